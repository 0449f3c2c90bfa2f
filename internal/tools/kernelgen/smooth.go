package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels of internal/methods/hblr/solver, in AVX2 and AVX-512 and float64. Their twins in Go
// are in its kernel.go and loops.go. Lanes are independent, so the width of a register does not
// affect the bits of the result.

// Fields of internal/methods/hblr/solver's pass.
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

// Fields of internal/methods/hblr/solver's weighing.
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

// smooth writes all kernels of internal/methods/hblr/solver.
func smooth(c *build.Context) {
	constantsSmooth(c)
	for _, width := range []int{32, 64} {
		for n := width / 8; n <= lanes; n += width / 8 {
			g := isa{c, width, 8, n}
			scoreSmooth(g)
			for _, k := range []gathering{{"gather", 1, false}, {"gatherSquare", 2, false}, {"gatherSize", 0, false},
				{"gatherBoth", 1, true}} {
				gatherSmooth(g, k)
			}
		}
		g := isa{c, width, 8, width / 8}
		weighSmooth(g)
		columnLoops(g)
	}
	systems(c)
}

// widened returns a float32 from memory in all lanes, converted to float64.
func (g isa) widened(m operand.Mem) reg.VecVirtual {
	x := g.reg()
	if g.width == 64 {
		g.VCVTPS2PD_BCST(m, x)
		return x
	}
	g.VBROADCASTSS(m, x.AsX())
	g.VCVTPS2PD(x.AsX(), x)
	return x
}

// offset returns the byte offset of the tile's line that the index at m names.
func (g isa) offset(m operand.Mem) reg.GPVirtual {
	f := g.GP64()
	g.MOVL(m, f.As32())
	g.IMUL3Q(operand.U32(uint32(g.lanes*g.size)), f, f)
	return f
}

// aheadSmooth is the number of entries ahead of which the tile's lines are prefetched.
const aheadSmooth = 24

// ahead prefetches the tile's line of a later entry.
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

// end returns the last entry of the shard.
func (g isa) end(arg, idx reg.Register) reg.GPVirtual {
	end := load(g.Context, arg, passEntries)
	g.LEAQ(operand.Mem{Base: idx, Index: end, Scale: 4, Disp: -4}, end)
	return end
}

// set returns the name of the instruction set.
func (g isa) set() string { return map[int]string{32: "AVX2", 64: "AVX-512"}[g.width] }

// named returns a kernel's name for lines of this many lanes, with a w if registers are wide.
func (g isa) named(name string) string {
	return fmt.Sprint(name, g.lanes, map[int]string{64: "w"}[g.width])
}

// scoreSmooth writes internal/methods/hblr/solver's scoreLines.
func scoreSmooth(g isa) {
	name := g.named("scores")
	arg := begin(g.Context, name, fmt.Sprintf("%s is scoreLines of %d lanes in %s.", name, g.lanes, g.set()))
	bounds, n := load(g.Context, arg, passBegin), load(g.Context, arg, passN)
	idx, val := load(g.Context, arg, passIdx), load(g.Context, arg, passVal)
	w, last, out := load(g.Context, arg, passTile), load(g.Context, arg, passLast), load(g.Context, arg, passRows)
	end := g.end(arg, idx)
	bias := g.reg()
	g.VBROADCASTSD(operand.Mem{Base: arg, Disp: passBias}, bias)
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.entries(bounds, idx, val)
	g.Label("row")
	count := g.length(bounds)
	acc := g.vec()
	for p := range acc {
		g.clear(acc[p])
	}
	g.TESTQ(count, count)
	g.JLE(operand.LabelRef("sum"))
	g.Label("entry")
	f := g.offset(operand.Mem{Base: idx})
	x := g.widened(operand.Mem{Base: val})
	g.ahead(idx, end, w)
	for p := range acc {
		t := g.reg()
		g.VMULPD(operand.Mem{Base: w, Index: f, Scale: 1, Disp: g.width * p}, x, t)
		g.VADDPD(t, acc[p], acc[p])
	}
	g.ADDQ(operand.Imm(4), idx)
	g.ADDQ(operand.Imm(4), val)
	g.DECQ(count)
	g.JNZ(operand.LabelRef("entry"))
	g.Label("sum")
	for p := range acc {
		t := g.reg()
		g.VMULPD(operand.Mem{Base: last, Disp: g.width * p}, bias, t)
		g.VADDPD(t, acc[p], acc[p])
		g.VMOVUPD(acc[p], operand.Mem{Base: out, Disp: g.width * p})
	}
	g.ADDQ(operand.Imm(uint64(g.lanes*g.size)), out)
	g.ADDQ(operand.Imm(8), bounds)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// gathering describes a kernel that adds up the rows: their entries to a power, where power 0 means
// |x| times the row's size. With both, the squares are also added, with other coefficients, to
// another tile.
type gathering struct {
	name  string
	power int
	both  bool
}

// gatherSmooth writes one of internal/methods/hblr/solver's gatherLines.
func gatherSmooth(g isa, k gathering) {
	name := g.named(k.name)
	arg := begin(g.Context, name, fmt.Sprintf("%s is gatherLines of %d lanes in %s, %s.", name, g.lanes, g.set(),
		map[string]string{"gather": "by x", "gatherSquare": "by its square", "gatherSize": "by |x| times the row's size",
			"gatherBoth": "by x and, to the second tile, by its square"}[k.name]))
	bounds, n := load(g.Context, arg, passBegin), load(g.Context, arg, passN)
	idx, val := load(g.Context, arg, passIdx), load(g.Context, arg, passVal)
	type side struct{ tile, last, rows reg.GPVirtual }
	sides := []side{{load(g.Context, arg, passTile), load(g.Context, arg, passLast), load(g.Context, arg, passRows)}}
	if k.both {
		sides = append(sides, side{load(g.Context, arg, passTile2), load(g.Context, arg, passLast2),
			load(g.Context, arg, passRows2)})
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
	scale := g.reg()
	if k.power == 0 {
		g.VBROADCASTSD(operand.Mem{Base: size}, scale)
		g.ADDQ(operand.Imm(8), size)
	}
	for s, side := range sides {
		coef[s] = g.vec()
		bias := g.reg()
		g.VBROADCASTSD(operand.Mem{Base: arg, Disp: []int{passBias, passBias2}[s]}, bias)
		if k.power == 0 {
			g.VMULPD(scale, bias, bias)
		}
		for p, v := range coef[s] {
			g.VMOVUPD(operand.Mem{Base: side.rows, Disp: g.width * p}, v)
			t := g.reg()
			g.VMULPD(v, bias, t)
			g.VADDPD(operand.Mem{Base: side.last, Disp: g.width * p}, t, t)
			g.VMOVUPD(t, operand.Mem{Base: side.last, Disp: g.width * p})
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
			t, m := g.reg(), operand.Mem{Base: side.tile, Index: f, Scale: 1, Disp: g.width * p}
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

// constants are the numbers of internal/methods/hblr/solver's kernels, by name, eight copies each.
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

// constantsSmooth puts the constants into memory.
func constantsSmooth(c *build.Context) {
	for _, k := range constants {
		c.StaticGlobal(k.name)
		c.DataAttributes(attr.RODATA | attr.NOPTR)
		for range 8 {
			c.AppendDatum(operand.U64(k.bits))
		}
	}
	c.StaticGlobal("bits")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for l := range 8 {
		c.AppendDatum(operand.U64(1 << l))
	}
}

// doubles returns a constant by its name.
func doubles(name string) operand.Mem { return constant(name, 0) }

// choose copies to y the lanes of x that are in the mask, which compare made.
func (g isa) choose(mask reg.Register, x, y reg.VecVirtual) {
	if g.width == 64 {
		g.VMOVAPD(x, mask, y)
		return
	}
	g.VBLENDVPD(mask, x, y, y)
}

// compare returns a mask of lanes.
func (g isa) compare(how operand.Op, x operand.Op, y reg.VecVirtual) reg.Register {
	if g.width == 64 {
		k := g.K()
		g.VCMPPD(how, x, y, k)
		return k
	}
	m := g.YMM()
	g.VCMPPD(how, x, y, m)
	return m
}

// only returns the numbers at m where the mask is set, and 0 elsewhere.
func (g isa) only(mask reg.Register, m operand.Mem) reg.VecVirtual {
	y := g.reg()
	if g.width == 64 {
		g.VMOVUPD_Z(m, mask, y)
		return y
	}
	g.VANDPD(m, mask, y)
	return y
}

// weighSmooth writes internal/methods/hblr/solver's weighLines, a register of lanes at a time.
func weighSmooth(g isa) {
	name := map[int]string{32: "weigh", 64: "weighw"}[g.width]
	arg := begin(g.Context, name, fmt.Sprintf("%s is weighLines in %s.", name, g.set()))
	score, move, trial := load(g.Context, arg, weighScore), load(g.Context, arg, weighMove),
		load(g.Context, arg, weighTrial)
	coef, curve, positive := load(g.Context, arg, weighCoef), load(g.Context, arg, weighCurve),
		load(g.Context, arg, weighPositive)
	weight, n := load(g.Context, arg, weighWeight), load(g.Context, arg, weighN)
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.Label("row")
	mask, at, quarters := g.GP64(), g.GP64(), load(g.Context, arg, weighQuarters)
	g.MOVWLZX(operand.Mem{Base: positive}, mask.As32())
	g.MOVQ(arg, at)
	if g.width == 64 {
		g.SHRQ(operand.Imm(1), quarters)
	}
	g.Label("quarter")
	length := operand.Mem{Base: at, Disp: weighLength}
	z, t := g.reg(), g.reg()
	g.VMOVUPD(operand.Mem{Base: move}, t)
	g.VMULPD(length, t, t)
	g.VADDPD(operand.Mem{Base: score}, t, z)
	g.VMOVUPD(z, operand.Mem{Base: trial})
	// own: the sign of the lanes whose row this is
	own := g.reg()
	g.VMOVQ(mask, own.AsX())
	g.VPBROADCASTQ(own.AsX(), own)
	if g.width == 64 {
		k := g.K()
		g.VPTESTMQ(doubles("bits"), own, k)
		own = g.only(k, doubles("sign"))
	} else {
		g.VPAND(doubles("bits"), own, own)
		g.VPCMPEQQ(doubles("bits"), own, own)
		g.VANDPD(doubles("sign"), own, own)
	}
	g.VXORPD(own, z, z)
	// x = exp(-|z|)
	a := g.reg()
	g.VORPD(doubles("sign"), z, a)
	x := g.exponential(a)
	// p q, and the probability of the other label
	u, q, p, w := g.reg(), g.reg(), g.reg(), g.reg()
	g.VADDPD(doubles("one"), x, u)
	g.VMOVUPD(doubles("one"), q)
	g.VDIVPD(u, q, q)
	g.VMULPD(x, q, p)
	g.VBROADCASTSD(operand.Mem{Base: weight}, w)
	g.VMULPD(p, q, t)
	g.VMULPD(w, t, t)
	g.VMOVUPD(t, operand.Mem{Base: curve})
	zero := g.reg()
	g.clear(zero)
	g.choose(g.compare(cmpGt, zero, z), q, p)
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
		g.ADDQ(operand.Imm(uint64(g.width)), v)
	}
	g.SHRL(operand.Imm(uint64(g.width/8)), mask.As32())
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

// poly returns c0 + t (c1 + t (...)) for named coefficients. The last coefficient is first
// multiplied by t.
func (g isa) poly(t reg.VecVirtual, names ...string) reg.VecVirtual {
	y := g.reg()
	g.VMOVUPD(doubles(names[0]), y)
	for _, name := range names[1:] {
		g.VMULPD(t, y, y)
		g.VADDPD(doubles(name), y, y)
	}
	return y
}

// exponential writes the twin of internal/methods/hblr/solver's expNegative.
func (g isa) exponential(a reg.VecVirtual) reg.VecVirtual {
	m, k := g.reg(), g.reg()
	var whole reg.VecVirtual = g.XMM()
	if g.width == 64 {
		whole = g.YMM()
	}
	g.VMULPD(doubles("log2e"), a, m)
	g.VSUBPD(doubles("half"), m, m)
	if g.width == 64 {
		g.VCVTTPD2DQ(m, whole)
	} else {
		g.VCVTTPD2DQY(m, whole)
	}
	g.VCVTDQ2PD(whole, k)
	hi, lo, r := g.reg(), g.reg(), g.reg()
	g.VMULPD(doubles("ln2Hi"), k, hi)
	g.VSUBPD(hi, a, hi)
	g.VMULPD(doubles("ln2Lo"), k, lo)
	g.VSUBPD(lo, hi, r)
	t := g.reg()
	g.VMULPD(r, r, t)
	p := g.poly(t, "e5", "e4", "e3", "e2", "e1")
	g.VMULPD(t, p, p)
	g.VSUBPD(p, r, p) // c = r - t p
	g.VMULPD(p, r, r)
	d := g.reg()
	g.VMOVUPD(doubles("two"), d)
	g.VSUBPD(p, d, d)
	g.VDIVPD(d, r, r)
	g.VSUBPD(r, lo, r)
	g.VSUBPD(hi, r, r)
	y := g.reg()
	g.VMOVUPD(doubles("one"), y)
	g.VSUBPD(r, y, y)
	e := g.reg()
	g.VPMOVSXDQ(whole, e)
	g.VPADDQ(doubles("offset"), e, e)
	g.VPSLLQ(operand.Imm(52), e, e)
	g.VMULPD(e, y, y)
	out := g.reg()
	g.clear(out)
	g.choose(g.compare(cmpGt, doubles("least"), a), y, out)
	return out
}

// logarithm returns log(1+x) as internal/methods/hblr/solver's weighLines computes it. u is 1+x and
// q is 1/u.
func (g isa) logarithm(x, u, q reg.VecVirtual) reg.VecVirtual {
	rest := g.reg()
	g.VSUBPD(doubles("one"), u, rest)
	g.VSUBPD(rest, x, rest)
	g.VMULPD(q, rest, rest)
	f, half := g.reg(), g.reg()
	big := g.compare(cmpNlt, doubles("sqrt2"), u)
	g.VMULPD(doubles("half"), u, half)
	g.VMOVAPD(u, f)
	g.choose(big, half, f)
	g.VSUBPD(doubles("one"), f, f)
	k := g.only(big, doubles("one"))
	s, z, w := g.reg(), g.reg(), g.reg()
	g.VADDPD(doubles("two"), f, s)
	g.VDIVPD(s, f, s)
	g.VMULPD(s, s, z)
	g.VMULPD(z, z, w)
	t1 := g.poly(w, "l6", "l4", "l2")
	g.VMULPD(w, t1, t1)
	t2 := g.poly(w, "l7", "l5", "l3", "l1")
	g.VMULPD(z, t2, t2)
	y := g.reg()
	g.VMULPD(f, f, half)
	g.VMULPD(doubles("half"), half, half)
	g.VADDPD(t1, half, y)
	g.VADDPD(t2, y, y)
	g.VMULPD(s, y, y)
	lo := g.reg()
	g.VMULPD(doubles("ln2Lo"), k, lo)
	g.VADDPD(lo, y, y)
	g.VSUBPD(y, half, y)
	g.VSUBPD(f, y, y)
	g.VMULPD(doubles("ln2Hi"), k, k)
	g.VSUBPD(y, k, y)
	g.VADDPD(rest, y, y)
	return y
}
