package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Constants in memory.
const (
	laneBits = "laneBits" // 1<<l for lane l
	signBits = "signBits"
	ones     = "ones"
	halves   = "halves"
)

// constants256 puts the constants of the AVX2 kernels into memory, because registers are few.
func constants256(c *build.Context) {
	put := func(name string, at func(l int) uint32) {
		c.StaticGlobal(name)
		c.DataAttributes(attr.RODATA | attr.NOPTR)
		for l := range lanes {
			c.AppendDatum(operand.U32(at(l)))
		}
	}
	put(laneBits, func(l int) uint32 { return 1 << l })
	put(signBits, func(int) uint32 { return 0x80000000 })
	put(ones, func(int) uint32 { return 0x3f800000 })
	put(halves, func(int) uint32 { return 0x3f000000 })
}

func constant(name string, p int) operand.Mem {
	return operand.NewDataAddr(operand.Symbol{Name: name, Static: true}, 32*p)
}

// lanesOf spreads the bits of a mask over the lanes of register p.
func (g isa) lanesOf(mask reg.Register, p int) reg.VecVirtual {
	x, v := g.XMM(), g.YMM()
	g.VMOVD(mask, x)
	g.VPBROADCASTD(x, v)
	g.VPAND(constant(laneBits, p), v, v)
	g.VPCMPEQD(constant(laneBits, p), v, v)
	return v
}

// quarterOf spreads the bits of a mask over lanes 4q to 4q+3, of float64.
func (g isa) quarterOf(mask reg.Register, q int) reg.VecVirtual {
	eight, x, v := g.lanesOf(mask, q/2), g.XMM(), g.YMM()
	g.VEXTRACTI128(operand.U8(q%2), eight, x)
	g.VPMOVSXDQ(x, v)
	return v
}

// visit256 writes visitRows with eight lanes at a time. With narrow, a line of the tile has four
// lanes in all.
func visit256(c *build.Context, squared, narrow bool) {
	g, tile := isa{c, 32, 4, lanes}, isa{c, 32, 4, lanes}
	name := fmt.Sprintf("visit%s32256", map[bool]string{false: "Hinge", true: "Squared"}[squared])
	doc := name + " is visitRows[float32] in AVX2."
	if narrow {
		g, tile = isa{c, 32, 4, 8}, isa{c, 16, 4, 4}
		name += "Narrow"
		doc = name + " is visitRows[float32] in AVX2, with four lanes a line of the tile."
	}
	arg := begin(c, name, doc)
	order, n, rows := load(c, arg, visitOrder), load(c, arg, visitN), load(c, arg, visitRows)
	w, dual := load(c, arg, visitW), load(c, arg, visitDual)
	vec := func(v, p int) operand.Mem {
		return operand.Mem{Base: arg, Disp: visitBias + v*64 + p*g.width}
	}
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.Label("row")
	k, a, r, mask := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.MOVL(operand.Mem{Base: order}, k.As32())
	g.MOVQ(k, a)
	g.SHLQ(operand.U8(6), a)
	g.ADDQ(dual, a)
	g.SHLQ(operand.U8(5), k)
	g.LEAQ(operand.Mem{Base: rows, Index: k, Scale: 1}, r)
	g.MOVWLZX(operand.Mem{Base: r, Disp: rowActive}, mask.As32())
	g.ANDQ(operand.Mem{Base: arg, Disp: visitRunning}, mask)
	g.JZ(operand.LabelRef("next"))
	idx, val, len := g.row(r)
	ahead := g.prefetch(order, n, rows, dual, idx, len)
	g.count(mask, len, arg)
	b := tile.reg()
	g.VMOVUPS(vec(bias, 0), b)
	last := load(c, arg, visitLast)
	acc := tile.start([]operand.Op{operand.Mem{Base: last}, operand.Mem{Base: last, Disp: 32}}, b)
	tile.dot("", acc, idx, val, len, w, ahead)
	score := acc[0]
	if narrow { // the other half is zero
		score = []reg.VecVirtual{acc[0][0].AsY().(reg.VecVirtual)}
	}
	delta := g.settle(score, r, a, mask, vec, squared)
	if narrow {
		delta = []reg.VecVirtual{delta[0].AsX().(reg.VecVirtual)}
	}
	tile.follow(delta, r, vec)
	g.Label("next")
	g.ADDQ(operand.Imm(4), order)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// settle writes the step of visitArgs. It continues with the next row if no lane moves, and
// otherwise returns the changes of the lanes.
func (g isa) settle(score []reg.VecVirtual, r, a, mask reg.Register, vec func(v, p int) operand.Mem,
	squared bool) (delta []reg.VecVirtual) {
	pos, drop, moving := g.GP64(), g.GP64(), g.GP64()
	g.MOVWLZX(operand.Mem{Base: r, Disp: rowPos}, pos.As32())
	g.XORL(drop.As32(), drop.As32())
	g.XORL(moving.As32(), moving.As32())
	delta = g.vec()
	for p, z := range score {
		in, neg, zero, bound := g.lanesOf(mask.(reg.GPVirtual).As32(), p), g.YMM(), g.YMM(), g.YMM()
		posv := g.lanesOf(pos.As32(), p)
		g.VXORPS(zero, zero, zero)
		g.VMOVUPS(vec(cNeg, p), bound)
		g.VBLENDVPS(posv, vec(cPos, p), bound, bound)
		soft := zero
		if squared {
			soft = g.YMM()
			g.VMOVUPS(vec(softNeg, p), soft)
			g.VBLENDVPS(posv, vec(softPos, p), soft, soft)
		}
		g.VANDNPS(constant(signBits, p), posv, neg)
		m, old, h, gap, t := g.YMM(), g.YMM(), g.YMM(), g.YMM(), g.YMM()
		g.VXORPS(neg, z, z)
		g.VSUBPS(constant(ones, p), z, m)
		g.VMOVUPS(operand.Mem{Base: a, Disp: 32 * p}, old)
		g.VSUBPS(m, zero, h)
		g.VMAXPS(zero, h, h)
		g.VMULPS(m, old, t)
		grad := m
		if squared {
			as := g.YMM()
			grad = g.YMM()
			g.VMULPS(soft, old, as)
			g.VADDPS(as, m, grad)
			g.VMULPS(h, h, h)
			g.VMULPS(h, bound, gap)
			g.VADDPS(t, gap, gap)
			g.VMULPS(constant(halves, p), as, as)
			g.VMULPS(as, old, as)
			g.VADDPS(as, gap, gap)
		} else {
			g.VMULPS(h, bound, gap)
			g.VADDPS(t, gap, gap)
		}
		g.VANDPS(in, gap, gap)
		g.estimated256(gap, vec, p)
		low, proj, kdrop := g.YMM(), g.YMM(), g.YMM()
		g.VCMPPS(cmpEq, zero, old, low)
		g.VCMPPS(cmpGt, vec(upper, p), grad, kdrop)
		g.VANDPS(low, kdrop, kdrop)
		g.VMINPS(zero, grad, proj)
		g.VBLENDVPS(low, proj, grad, proj)
		if !squared {
			high, u := g.YMM(), g.YMM()
			g.VCMPPS(cmpEq, bound, old, high)
			g.VANDNPS(high, low, high)
			g.VCMPPS(cmpLt, vec(lower, p), grad, u)
			g.VANDPS(high, u, u)
			g.VORPS(u, kdrop, kdrop)
			g.VMAXPS(zero, grad, u)
			g.VBLENDVPS(high, u, proj, proj)
		}
		g.VANDPS(in, kdrop, kdrop)
		g.VANDNPS(in, kdrop, in) // the lanes that stay
		u := g.YMM()
		g.VMOVUPS(vec(newUpper, p), t)
		g.VMAXPS(t, proj, u)
		g.VBLENDVPS(in, u, t, t)
		g.VMOVUPS(t, vec(newUpper, p))
		g.VMOVUPS(vec(newLower, p), t)
		g.VMINPS(t, proj, u)
		g.VBLENDVPS(in, u, t, t)
		g.VMOVUPS(t, vec(newLower, p))
		g.VCMPPS(cmpNeq, zero, proj, u)
		g.VANDPS(u, in, in) // those that may move
		d := g.GP32()
		g.VMOVMSKPS(kdrop, d)
		if p > 0 {
			g.SHLL(operand.U8(8), d)
		}
		g.ORL(d, drop.As32())
		g.VXORPS(delta[p], delta[p], delta[p])
		g.VMOVMSKPS(in, d)
		g.TESTL(d, d)
		skip := fmt.Sprintf("still%d", p)
		g.JZ(operand.LabelRef(skip))
		scale, now := g.YMM(), g.YMM()
		g.VBROADCASTSS(operand.Mem{Base: r, Disp: rowScale}, scale)
		if squared {
			one := g.YMM()
			g.VMOVUPS(constant(ones, p), one)
			g.VADDPS(soft, scale, scale)
			g.VDIVPS(scale, one, scale)
		}
		g.VMULPS(scale, grad, now)
		g.VSUBPS(now, old, now)
		g.VMAXPS(zero, now, now)
		if !squared {
			g.VMINPS(bound, now, now)
		}
		g.VCMPPS(cmpNeq, old, now, u)
		g.VANDPS(u, in, in) // those that move
		g.VBLENDVPS(in, now, old, t)
		g.VMOVUPS(t, operand.Mem{Base: a, Disp: 32 * p})
		g.VSUBPS(old, now, now)
		g.VXORPS(neg, now, now)
		g.VANDPS(in, now, delta[p])
		g.VMOVMSKPS(in, d)
		g.ORL(d, moving.As32())
		g.Label(skip)
	}
	g.NOTL(drop.As32())
	g.ANDW(drop.As16(), operand.Mem{Base: r, Disp: rowActive})
	g.TESTL(moving.As32(), moving.As32())
	g.JZ(operand.LabelRef("next"))
	g.MOVW(operand.U16(1), operand.Mem{Base: r, Disp: rowMoved})
	return delta
}

// follow adds delta times row r, including its bias, to the tile.
func (g isa) follow(delta []reg.VecVirtual, r reg.Register, vec func(v, p int) operand.Mem) {
	idx, val, len := g.row(r)
	arg := vec(0, 0).Base
	last, w := load(g.Context, arg, visitLast), load(g.Context, arg, visitW)
	for p := range delta {
		t := g.reg()
		line := operand.Mem{Base: last, Disp: g.width * p}
		g.VMULPS(vec(bias, p), delta[p], t)
		g.VADDPS(line, t, t)
		g.VMOVUPS(t, line)
	}
	g.move("", delta, idx, val, len, w)
}

// estimated256 adds gap to the estimate, in float64.
func (g isa) estimated256(gap reg.VecVirtual, vec func(v, p int) operand.Mem, p int) {
	hi := g.YMM()
	g.VEXTRACTF128(operand.Imm(1), gap, hi.AsX())
	for i, x := range []reg.VecVirtual{gap, hi} {
		m := vec(estimate, 0)
		m.Disp += 64*p + 32*i
		d := g.YMM()
		g.VCVTPS2PD(x.AsX(), d)
		g.VADDPD(m, d, d)
		g.VMOVUPD(d, m)
	}
}
