package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// add1 and the functions below are the operations on one element.
func (g isa) add1(ops ...operand.Op) { g.pick(g.VADDSS, g.VADDSD)(ops...) }
func (g isa) sub1(ops ...operand.Op) { g.pick(g.VSUBSS, g.VSUBSD)(ops...) }
func (g isa) mul1(ops ...operand.Op) { g.pick(g.VMULSS, g.VMULSD)(ops...) }
func (g isa) max1(ops ...operand.Op) { g.pick(g.VMAXSS, g.VMAXSD)(ops...) }
func (g isa) min1(ops ...operand.Op) { g.pick(g.VMINSS, g.VMINSD)(ops...) }
func (g isa) cmp1(ops ...operand.Op) { g.pick(g.VCMPSS, g.VCMPSD)(ops...) }
func (g isa) mov1(ops ...operand.Op) { g.pick(g.VMOVSS, g.VMOVSD)(ops...) }

// sixteen loads sixteen float32 from memory, converted.
func (g isa) sixteen(base reg.Register) (v []reg.VecVirtual) {
	v = g.vec()
	for p := range v {
		if g.size == 8 {
			g.VCVTPS2PD(operand.Mem{Base: base, Disp: p * g.width / 2}, v[p])
		} else {
			g.VMOVUPS(operand.Mem{Base: base, Disp: p * g.width}, v[p])
		}
	}
	return v
}

// halve adds halves of sixteen partial sums until one is left.
func (g isa) halve(acc []reg.VecVirtual) reg.VecVirtual {
	for len(acc) > 1 {
		half := acc[len(acc)/2:]
		for p := range half {
			g.add(half[p], acc[p], acc[p])
		}
		acc = acc[:len(half)]
	}
	s, h := acc[0], g.XMM()
	g.VEXTRACTF128(operand.Imm(1), s.AsY(), h)
	g.add(h, s.AsX(), s.AsX())
	if g.size == 4 {
		g.VPERMILPS(operand.Imm(0x0e), s.AsX(), h)
		g.add(h, s.AsX(), s.AsX())
		g.VPERMILPS(operand.Imm(0x01), s.AsX(), h)
	} else {
		g.VPERMILPD(operand.Imm(0x01), s.AsX(), h)
	}
	g.add(h, s.AsX(), s.AsX())
	return s
}

// visitDense writes mapper's visitDense, in AVX2: rows are short, and registers of AVX-512 make
// visits of float32 a third slower, and those of float64 no faster.
func visitDense(g isa) {
	name := fmt.Sprintf("lanes%d", 8*g.size)
	arg := begin(g.Context, name, fmt.Sprintf("%s is visitDense[float%d] in AVX2.", name, 8*g.size))
	order, n, kept := load(g.Context, arg, laneOrder), load(g.Context, arg, laneN), load(g.Context, arg, laneKept)
	xs, rows, line := load(g.Context, arg, laneX), load(g.Context, arg, laneRows), load(g.Context, arg, laneLines)
	stride := g.GP64() // bytes of a row of x
	g.MOVQ(line, stride)
	g.SHLQ(operand.U8(6), stride)
	left := g.GP64()
	g.XORL(left.As32(), left.As32())
	one, zero := g.XMM(), g.XMM()
	bits := g.GP64()
	if g.size == 8 {
		g.MOVQ(operand.U64(0x3ff0000000000000), bits)
		g.VMOVQ(bits, one)
	} else {
		g.MOVL(operand.U32(0x3f800000), bits.As32())
		g.VMOVD(bits.As32(), one)
	}
	g.VXORPS(zero, zero, zero)
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))

	g.Label("row")
	k := g.GP64()
	g.MOVL(operand.Mem{Base: order}, k.As32())
	g.MOVL(k.As32(), operand.Mem{Base: kept, Index: left, Scale: 4})
	ahead := g.GP64()
	g.LEAQ(operand.Mem{Base: order, Disp: 4}, ahead)
	g.CMPQ(n, operand.Imm(1))
	g.CMOVQEQ(order, ahead)
	g.MOVL(operand.Mem{Base: ahead}, ahead.As32())
	g.IMULQ(stride, ahead)
	g.ADDQ(xs, ahead)
	r, x := g.GP64(), g.GP64()
	g.MOVQ(k, r)
	g.SHLQ(operand.U8(map[int]uint64{4: 4, 8: 5}[g.size]), r)
	g.ADDQ(rows, r)
	g.IMULQ(stride, k)
	g.LEAQ(operand.Mem{Base: xs, Index: k, Scale: 1}, x)
	lane, w := g.GP64(), g.GP64()
	g.MOVL(operand.Mem{Base: r, Disp: 3 * g.size}, lane.As32())
	g.MOVQ(lane, w)
	g.IMULQ(stride, w)
	if g.size == 8 {
		g.SHLQ(operand.U8(1), w)
	}
	g.ADDQ(operand.Mem{Base: arg, Disp: laneW}, w)

	// The score.
	next := func(count reg.GPVirtual, label string) {
		g.ADDQ(operand.Imm(64), x)
		g.ADDQ(operand.Imm(uint64(16*g.size)), w)
		g.DECQ(count)
		g.JNZ(operand.LabelRef(label))
	}
	count := g.GP64()
	g.MOVQ(line, count)
	acc := g.vec()
	for p := range acc {
		g.clear(acc[p])
	}
	g.Label("score")
	v := g.sixteen(x)
	g.PREFETCHT0(operand.Mem{Base: ahead})
	g.ADDQ(operand.Imm(64), ahead)
	for p := range acc {
		g.mul(operand.Mem{Base: w, Disp: p * g.width}, v[p], v[p])
		g.add(v[p], acc[p], acc[p])
	}
	next(count, "score")
	s := g.halve(acc).AsX()

	of := func(field int) operand.Mem {
		return operand.Mem{Base: arg, Index: lane, Scale: uint8(g.size), Disp: laneUpper + field*lanes*g.size}
	}
	m, old, c := g.XMM(), g.XMM(), g.XMM()
	g.sub1(one, s, m)
	g.mov1(operand.Mem{Base: r}, old)
	g.mov1(operand.Mem{Base: r, Disp: g.size}, c)
	h, t := g.XMM(), g.XMM()
	g.sub1(m, zero, h)
	g.max1(zero, h, h)
	g.mul1(h, c, h)
	g.mul1(m, old, t)
	g.add1(t, h, h)
	if g.size == 4 {
		g.VCVTSS2SD(h, h, h)
	}
	sum := operand.Mem{Base: arg, Index: lane, Scale: 8, Disp: laneUpper + laneEstimate*lanes*g.size}
	g.VADDSD(sum, h, h)
	g.VMOVSD(h, sum)
	// Decide whether the lane drops the row.
	low, high, u, d := g.XMM(), g.XMM(), g.XMM(), g.XMM()
	g.cmp1(cmpEq, zero, old, low)
	g.cmp1(cmpEq, c, old, high)
	g.VANDNPS(high, low, high)
	g.cmp1(cmpGt, of(laneUpperOf), m, u)
	g.VANDPS(u, low, u)
	g.cmp1(cmpLt, of(laneLowerOf), m, d)
	g.VANDPS(d, high, d)
	g.VORPS(u, d, d)
	bit := g.GP32()
	g.VMOVMSKPS(d, bit)
	g.TESTL(operand.U32(1), bit)
	g.JNZ(operand.LabelRef("next"))
	g.INCQ(left)
	p := g.XMM()
	g.min1(zero, m, u)
	g.max1(zero, m, d)
	if g.size == 8 {
		g.VBLENDVPD(low, u, m, p)
		g.VBLENDVPD(high, d, p, p)
	} else {
		g.VBLENDVPS(low, u, m, p)
		g.VBLENDVPS(high, d, p, p)
	}
	g.mov1(of(laneNewUpper), u)
	g.max1(u, p, u)
	g.mov1(u, of(laneNewUpper))
	g.mov1(of(laneNewLower), d)
	g.min1(d, p, d)
	g.mov1(d, of(laneNewLower))
	// The step.
	now := g.XMM()
	g.mul1(operand.Mem{Base: r, Disp: 2 * g.size}, m, now)
	g.sub1(now, old, now)
	g.max1(zero, now, now)
	g.min1(c, now, now)
	if g.size == 8 {
		g.VUCOMISD(old, now)
	} else {
		g.VUCOMISS(old, now)
	}
	g.JEQ(operand.LabelRef("next"))
	g.mov1(now, operand.Mem{Base: r})
	g.sub1(old, now, now)
	delta := g.reg()
	if g.size == 8 {
		g.VBROADCASTSD(now, delta)
	} else {
		g.VBROADCASTSS(now, delta)
	}
	g.MOVQ(line, count)
	g.SUBQ(stride, x)
	g.SUBQ(stride, w)
	if g.size == 8 {
		g.SUBQ(stride, w)
	}
	g.Label("move")
	v = g.sixteen(x)
	for p := range v {
		at := operand.Mem{Base: w, Disp: p * g.width}
		g.mul(delta, v[p], v[p])
		g.add(at, v[p], v[p])
		g.mov(v[p], at)
	}
	next(count, "move")
	g.Label("next")
	g.ADDQ(operand.Imm(4), order)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.MOVQ(left, operand.Mem{Base: arg, Disp: laneLeft})
	g.VZEROUPPER()
	g.RET()
}
