package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels of mapper/hblr, in AVX2 and float64. Their twins in Go are in its kernel.go and
// loops.go.

// Fields of mapper/hblr's pass.
const (
	passBegin = 8 * iota
	passN
	passIdx
	passVal
	passEntries
	passTile
	passLast
	passRows
	passTile2
	passLast2
	passRows2
	passSize
	passBias
	passBias2
)

// Fields of mapper/hblr's weighing.
const (
	weighScore = 8 * iota
	weighMove
	weighTrial
	weighCoef
	weighCurve
	weighPositive
	weighWeight
	weighStride
	weighN
	weighQuarters
	weighLength
	weighLoss = weighLength + 8*lanes
)

// smooth writes all kernels of mapper/hblr.
func smooth(c *build.Context) {
	constantsSmooth(c)
	for n := 4; n <= lanes; n += 4 {
		g := isa{c, 32, 8, n}
		scoreSmooth(g)
		for _, k := range []gathering{{"gather", 1, false}, {"gatherSquare", 2, false}, {"gatherSize", 0, false}, {"gatherBoth", 1, true}} {
			gatherSmooth(g, k)
		}
	}
	weighSmooth(isa{c, 32, 8, 4})
	systems(c)
}

// widened is a float32 of memory in all lanes, converted to float64.
func (g isa) widened(m operand.Mem) reg.VecVirtual {
	x := g.YMM()
	g.VBROADCASTSS(m, x.AsX())
	g.VCVTPS2PD(x.AsX(), x)
	return x
}

// offset is the byte offset of the tile's line that the index at m names.
func (g isa) offset(m operand.Mem) reg.GPVirtual {
	f := g.GP64()
	g.MOVL(m, f.As32())
	g.IMUL3Q(operand.U32(uint32(g.lanes*g.size)), f, f)
	return f
}

// How many entries ahead the tile's lines are fetched.
const aheadSmooth = 24

// ahead fetches a line of the tile of a coming entry.
func (g isa) ahead(idx, end, w reg.Register) {
	at, f := g.GP64(), g.GP64()
	g.LEAQ(operand.Mem{Base: idx, Disp: 4 * aheadSmooth}, at)
	g.CMPQ(at, end)
	g.CMOVQHI(idx, at)
	g.MOVL(operand.Mem{Base: at}, f.As32())
	g.IMUL3Q(operand.U32(uint32(g.lanes*g.size)), f, f)
	for p := 0; p < g.lanes*g.size; p += 64 {
		g.PREFETCHT0(operand.Mem{Base: w, Index: f, Scale: 1, Disp: p})
	}
}

// last entry of the shard.
func (g isa) end(arg, idx reg.Register) reg.GPVirtual {
	end := load(g.Context, arg, passEntries)
	g.LEAQ(operand.Mem{Base: idx, Index: end, Scale: 4, Disp: -4}, end)
	return end
}

// scoreSmooth writes mapper/hblr's scoreLines.
func scoreSmooth(g isa) {
	name := fmt.Sprintf("scores%d", g.lanes)
	arg := begin(g.Context, name, fmt.Sprintf("%s is scoreLines of %d lanes in AVX2.", name, g.lanes))
	bounds, n := load(g.Context, arg, passBegin), load(g.Context, arg, passN)
	idx, val := load(g.Context, arg, passIdx), load(g.Context, arg, passVal)
	w, last, out := load(g.Context, arg, passTile), load(g.Context, arg, passLast), load(g.Context, arg, passRows)
	end := g.end(arg, idx)
	bias := g.YMM()
	g.VBROADCASTSD(operand.Mem{Base: arg, Disp: passBias}, bias)
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.entries(bounds, idx, val)
	g.Label("row")
	count := g.length(bounds)
	acc := g.vec()
	for p := range acc {
		g.VXORPD(acc[p], acc[p], acc[p])
	}
	g.TESTQ(count, count)
	g.JLE(operand.LabelRef("sum"))
	g.Label("entry")
	f := g.offset(operand.Mem{Base: idx})
	x := g.widened(operand.Mem{Base: val})
	g.ahead(idx, end, w)
	for p := range acc {
		t := g.YMM()
		g.VMULPD(operand.Mem{Base: w, Index: f, Scale: 1, Disp: 32 * p}, x, t)
		g.VADDPD(t, acc[p], acc[p])
	}
	g.ADDQ(operand.Imm(4), idx)
	g.ADDQ(operand.Imm(4), val)
	g.DECQ(count)
	g.JNZ(operand.LabelRef("entry"))
	g.Label("sum")
	for p := range acc {
		t := g.YMM()
		g.VMULPD(operand.Mem{Base: last, Disp: 32 * p}, bias, t)
		g.VADDPD(t, acc[p], acc[p])
		g.VMOVUPD(acc[p], operand.Mem{Base: out, Disp: 32 * p})
	}
	g.ADDQ(operand.Imm(uint64(g.lanes*g.size)), out)
	g.ADDQ(operand.Imm(8), bounds)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// gathering is a kernel that adds the rows up: entries to a power, 0 being |x| times the row's
// size; both: also the squares, with other coefficients, to another tile.
type gathering struct {
	name  string
	power int
	both  bool
}

// gatherSmooth writes one of mapper/hblr's gatherLines.
func gatherSmooth(g isa, k gathering) {
	name := fmt.Sprintf("%s%d", k.name, g.lanes)
	arg := begin(g.Context, name, fmt.Sprintf("%s is gatherLines of %d lanes in AVX2, %s.", name, g.lanes,
		map[string]string{"gather": "by x", "gatherSquare": "by its square", "gatherSize": "by |x| times the row's size", "gatherBoth": "by x and, to the second tile, by its square"}[k.name]))
	bounds, n := load(g.Context, arg, passBegin), load(g.Context, arg, passN)
	idx, val := load(g.Context, arg, passIdx), load(g.Context, arg, passVal)
	type side struct{ tile, last, rows reg.GPVirtual }
	sides := []side{{load(g.Context, arg, passTile), load(g.Context, arg, passLast), load(g.Context, arg, passRows)}}
	if k.both {
		sides = append(sides, side{load(g.Context, arg, passTile2), load(g.Context, arg, passLast2), load(g.Context, arg, passRows2)})
	}
	end := g.end(arg, idx)
	var size reg.GPVirtual
	if k.power == 0 {
		size = load(g.Context, arg, passSize)
	}
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.entries(bounds, idx, val)
	g.Label("row")
	count := g.length(bounds)
	var coef [2][]reg.VecVirtual
	scale := g.YMM()
	if k.power == 0 {
		g.VBROADCASTSD(operand.Mem{Base: size}, scale)
		g.ADDQ(operand.Imm(8), size)
	}
	for s, side := range sides {
		coef[s] = g.vec()
		bias := g.YMM()
		g.VBROADCASTSD(operand.Mem{Base: arg, Disp: []int{passBias, passBias2}[s]}, bias)
		if k.power == 0 {
			g.VMULPD(scale, bias, bias)
		}
		for p, v := range coef[s] {
			g.VMOVUPD(operand.Mem{Base: side.rows, Disp: 32 * p}, v)
			t := g.YMM()
			g.VMULPD(v, bias, t)
			g.VADDPD(operand.Mem{Base: side.last, Disp: 32 * p}, t, t)
			g.VMOVUPD(t, operand.Mem{Base: side.last, Disp: 32 * p})
		}
		g.ADDQ(operand.Imm(uint64(g.lanes*g.size)), side.rows)
	}
	g.TESTQ(count, count)
	g.JLE(operand.LabelRef("next"))
	g.Label("entry")
	f := g.offset(operand.Mem{Base: idx})
	x := g.widened(operand.Mem{Base: val})
	switch k.power {
	case 0:
		g.VANDPD(doubles("positive"), x, x)
		g.VMULPD(scale, x, x)
	case 2:
		g.VMULPD(x, x, x)
	}
	for s, side := range sides {
		g.ahead(idx, end, side.tile)
		if s == 1 {
			g.VMULPD(x, x, x)
		}
		for p, v := range coef[s] {
			t, m := g.YMM(), operand.Mem{Base: side.tile, Index: f, Scale: 1, Disp: 32 * p}
			g.VMULPD(v, x, t)
			g.VADDPD(m, t, t)
			g.VMOVUPD(t, m)
		}
	}
	g.ADDQ(operand.Imm(4), idx)
	g.ADDQ(operand.Imm(4), val)
	g.DECQ(count)
	g.JNZ(operand.LabelRef("entry"))
	g.Label("next")
	g.ADDQ(operand.Imm(8), bounds)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// constants are the numbers of mapper/hblr's kernels, by name, four copies each.
var constants = []struct {
	name string
	bits uint64
}{
	{"positive", 1<<63 - 1},
	{"sign", 1 << 63},
	{"one", math.Float64bits(1)},
	{"two", math.Float64bits(2)},
	{"half", math.Float64bits(0.5)},
	{"log2e", math.Float64bits(math.Log2E)},
	{"ln2Hi", math.Float64bits(6.93147180369123816490e-01)},
	{"ln2Lo", math.Float64bits(1.90821492927058770002e-10)},
	{"least", math.Float64bits(-690)},
	{"sqrt2", math.Float64bits(math.Sqrt2)},
	{"offset", 1023},
	{"e5", math.Float64bits(4.13813679705723846039e-08)},
	{"e4", math.Float64bits(-1.65339022054652515390e-06)},
	{"e3", math.Float64bits(6.61375632143793436117e-05)},
	{"e2", math.Float64bits(-2.77777777770155933842e-03)},
	{"e1", math.Float64bits(1.66666666666666657415e-01)},
	{"l1", math.Float64bits(6.666666666666735130e-01)},
	{"l2", math.Float64bits(3.999999999940941908e-01)},
	{"l3", math.Float64bits(2.857142874366239149e-01)},
	{"l4", math.Float64bits(2.222219843214978396e-01)},
	{"l5", math.Float64bits(1.818357216161805012e-01)},
	{"l6", math.Float64bits(1.531383769920937332e-01)},
	{"l7", math.Float64bits(1.479819860511658591e-01)},
}

// constantsSmooth puts them into memory.
func constantsSmooth(c *build.Context) {
	for _, k := range constants {
		c.StaticGlobal(k.name)
		c.DataAttributes(attr.RODATA | attr.NOPTR)
		for range 4 {
			c.AppendDatum(operand.U64(k.bits))
		}
	}
	c.StaticGlobal("bits")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for l := range 4 {
		c.AppendDatum(operand.U64(1 << l))
	}
}

// doubles is a constant by its name.
func doubles(name string) operand.Mem { return constant(name, 0) }

// weighSmooth writes mapper/hblr's weighLines: four lanes at a time.
func weighSmooth(g isa) {
	arg := begin(g.Context, "weigh", "weigh is weighLines in AVX2.")
	score, move, trial := load(g.Context, arg, weighScore), load(g.Context, arg, weighMove), load(g.Context, arg, weighTrial)
	coef, curve, positive := load(g.Context, arg, weighCoef), load(g.Context, arg, weighCurve), load(g.Context, arg, weighPositive)
	weight, n := load(g.Context, arg, weighWeight), load(g.Context, arg, weighN)
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.Label("row")
	mask, at, quarters := g.GP64(), g.GP64(), load(g.Context, arg, weighQuarters)
	g.MOVWLZX(operand.Mem{Base: positive}, mask.As32())
	g.MOVQ(arg, at)
	g.Label("quarter")
	length := operand.Mem{Base: at, Disp: weighLength}
	z, t := g.YMM(), g.YMM()
	g.VMOVUPD(operand.Mem{Base: move}, t)
	g.VMULPD(length, t, t)
	g.VADDPD(operand.Mem{Base: score}, t, z)
	g.VMOVUPD(z, operand.Mem{Base: trial})
	// own: the sign of the lanes whose row this is
	own := g.YMM()
	g.VMOVQ(mask, own.AsX())
	g.VPBROADCASTQ(own.AsX(), own)
	g.VPAND(doubles("bits"), own, own)
	g.VPCMPEQQ(doubles("bits"), own, own)
	g.VANDPD(doubles("sign"), own, own)
	g.VXORPD(own, z, z)
	// x = exp(-|z|)
	a := g.YMM()
	g.VORPD(doubles("sign"), z, a)
	x := g.exponential(a)
	// p q, and the probability of the other label
	u, q, p, w := g.YMM(), g.YMM(), g.YMM(), g.YMM()
	g.VADDPD(doubles("one"), x, u)
	g.VMOVUPD(doubles("one"), q)
	g.VDIVPD(u, q, q)
	g.VMULPD(x, q, p)
	g.VBROADCASTSD(operand.Mem{Base: weight}, w)
	g.VMULPD(p, q, t)
	g.VMULPD(w, t, t)
	g.VMOVUPD(t, operand.Mem{Base: curve})
	zero, above := g.YMM(), g.YMM()
	g.VXORPD(zero, zero, zero)
	g.VCMPPD(cmpGt, zero, z, above)
	g.VBLENDVPD(above, q, p, p)
	g.VXORPD(own, p, p)
	g.VXORPD(doubles("sign"), p, p)
	g.VMULPD(w, p, p)
	g.VMOVUPD(p, operand.Mem{Base: coef})
	// the loss
	y := g.logarithm(x, u, q)
	g.VMAXPD(z, zero, zero)
	g.VADDPD(zero, y, y)
	g.VMULPD(w, y, y)
	loss := operand.Mem{Base: at, Disp: weighLoss}
	g.VADDPD(loss, y, y)
	g.VMOVUPD(y, loss)
	for _, v := range []reg.GPVirtual{score, move, trial, coef, curve, at} {
		g.ADDQ(operand.Imm(32), v)
	}
	g.SHRL(operand.Imm(4), mask.As32())
	g.DECQ(quarters)
	g.JNZ(operand.LabelRef("quarter"))
	g.ADDQ(operand.Imm(2), positive)
	g.ADDQ(operand.Mem{Base: arg, Disp: weighStride}, weight)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// poly is c0 + t (c1 + t (...)), by names; the last coefficient is first times t.
func (g isa) poly(t reg.VecVirtual, names ...string) reg.VecVirtual {
	y := g.YMM()
	g.VMOVUPD(doubles(names[0]), y)
	for _, name := range names[1:] {
		g.VMULPD(t, y, y)
		g.VADDPD(doubles(name), y, y)
	}
	return y
}

// exponential is mapper/hblr's expNegative.
func (g isa) exponential(a reg.VecVirtual) reg.VecVirtual {
	m, whole, k := g.YMM(), g.XMM(), g.YMM()
	g.VMULPD(doubles("log2e"), a, m)
	g.VSUBPD(doubles("half"), m, m)
	g.VCVTTPD2DQY(m, whole)
	g.VCVTDQ2PD(whole, k)
	hi, lo, r := g.YMM(), g.YMM(), g.YMM()
	g.VMULPD(doubles("ln2Hi"), k, hi)
	g.VSUBPD(hi, a, hi)
	g.VMULPD(doubles("ln2Lo"), k, lo)
	g.VSUBPD(lo, hi, r)
	t := g.YMM()
	g.VMULPD(r, r, t)
	p := g.poly(t, "e5", "e4", "e3", "e2", "e1")
	g.VMULPD(t, p, p)
	g.VSUBPD(p, r, p) // c = r - t p
	g.VMULPD(p, r, r)
	d := g.YMM()
	g.VMOVUPD(doubles("two"), d)
	g.VSUBPD(p, d, d)
	g.VDIVPD(d, r, r)
	g.VSUBPD(r, lo, r)
	g.VSUBPD(hi, r, r)
	y := g.YMM()
	g.VMOVUPD(doubles("one"), y)
	g.VSUBPD(r, y, y)
	e := g.YMM()
	g.VPMOVSXDQ(whole, e)
	g.VPADDQ(doubles("offset"), e, e)
	g.VPSLLQ(operand.Imm(52), e, e)
	g.VMULPD(e, y, y)
	in := g.YMM()
	g.VCMPPD(cmpGt, doubles("least"), a, in)
	g.VANDPD(in, y, y)
	return y
}

// logarithm is log(1+x) as mapper/hblr's weighLines has it, u being 1+x and q 1/u.
func (g isa) logarithm(x, u, q reg.VecVirtual) reg.VecVirtual {
	rest := g.YMM()
	g.VSUBPD(doubles("one"), u, rest)
	g.VSUBPD(rest, x, rest)
	g.VMULPD(q, rest, rest)
	big, f, k := g.YMM(), g.YMM(), g.YMM()
	g.VMOVUPD(doubles("sqrt2"), k)
	g.VCMPPD(cmpNlt, k, u, big)
	g.VMULPD(doubles("half"), u, f)
	g.VBLENDVPD(big, f, u, f)
	g.VSUBPD(doubles("one"), f, f)
	g.VANDPD(doubles("one"), big, k)
	s, z, w := g.YMM(), g.YMM(), g.YMM()
	g.VADDPD(doubles("two"), f, s)
	g.VDIVPD(s, f, s)
	g.VMULPD(s, s, z)
	g.VMULPD(z, z, w)
	t1 := g.poly(w, "l6", "l4", "l2")
	g.VMULPD(w, t1, t1)
	t2 := g.poly(w, "l7", "l5", "l3", "l1")
	g.VMULPD(z, t2, t2)
	half, y := g.YMM(), g.YMM()
	g.VMULPD(f, f, half)
	g.VMULPD(doubles("half"), half, half)
	g.VADDPD(t1, half, y)
	g.VADDPD(t2, y, y)
	g.VMULPD(s, y, y)
	lo := g.YMM()
	g.VMULPD(doubles("ln2Lo"), k, lo)
	g.VADDPD(lo, y, y)
	g.VSUBPD(y, half, y)
	g.VSUBPD(f, y, y)
	g.VMULPD(doubles("ln2Hi"), k, k)
	g.VSUBPD(y, k, y)
	g.VADDPD(rest, y, y)
	return y
}
