package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func (g isa) xor(ops ...operand.Op) { g.pick(g.VPXORD, g.VPXORQ)(ops...) }
func (g isa) cmp(ops ...operand.Op) { g.pick(g.VCMPPS, g.VCMPPD)(ops...) }

func (g isa) div(ops ...operand.Op) { g.pick(g.VDIVPS, g.VDIVPD)(ops...) }
func (g isa) max(ops ...operand.Op) { g.pick(g.VMAXPS, g.VMAXPD)(ops...) }
func (g isa) min(ops ...operand.Op) { g.pick(g.VMINPS, g.VMINPD)(ops...) }

// constant broadcasts the float32 or float64 with these upper 32 bits.
func (g isa) constant(bits uint32, z reg.VecVirtual) {
	r := g.GP64()
	if g.size == 8 {
		g.MOVQ(operand.U64(uint64(bits)<<32), r)
		g.VPBROADCASTQ(r, z)
		return
	}
	g.MOVL(operand.U32(bits), r.As32())
	g.VPBROADCASTD(r.As32(), z)
}

const (
	cmpEq  = operand.U8(0x00)
	cmpNlt = operand.U8(0x05)
	cmpNeq = operand.U8(0x04)
	cmpGt  = operand.U8(0x1e) // quiet
	cmpLt  = operand.U8(0x11) // quiet
)

// visit512 writes visitRows with sixteen lanes at a time.
func visit512(c *build.Context, size int, squared bool) {
	g := isa{c, 64, size, lanes}
	name := map[bool]string{false: "Hinge", true: "Squared"}[squared]
	arg := begin(c, fmt.Sprintf("visit%s%d512", name, 8*size),
		fmt.Sprintf("visit%s%d512 is visitRows[float%d] in AVX-512.", name, 8*size, 8*size))
	order, n, rows := load(c, arg, visitOrder), load(c, arg, visitN), load(c, arg, visitRows)
	w, dual := load(c, arg, visitW), load(c, arg, visitDual)
	vec := func(v, p int) operand.Mem {
		return operand.Mem{Base: arg, Disp: visitBias + v*lanes*size + p*g.width}
	}
	biasLine, biasValue := g.vec(), g.ZMM()
	{
		last := load(c, arg, visitLast)
		for p := range biasLine {
			g.mov(operand.Mem{Base: last, Disp: p * g.width}, biasLine[p])
		}
	}
	g.mov(vec(bias, 0), biasValue)
	one, zero, sign := g.ZMM(), g.ZMM(), g.ZMM()
	if size == 8 {
		g.constant(0x3ff00000, one)
	} else {
		g.constant(0x3f800000, one)
	}
	g.constant(0x80000000, sign)
	g.VPXORD(zero, zero, zero)
	half := zero
	if squared {
		half = g.ZMM()
		if size == 8 {
			g.constant(0x3fe00000, half)
		} else {
			g.constant(0x3f000000, half)
		}
	}

	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.Label("row")
	k := g.GP64()
	g.MOVL(operand.Mem{Base: order}, k.As32())
	a := g.GP64()
	g.MOVQ(k, a)
	if size == 8 {
		g.SHLQ(operand.U8(7), a)
	} else {
		g.SHLQ(operand.U8(6), a)
	}
	g.ADDQ(dual, a)
	r := g.GP64()
	g.SHLQ(operand.U8(5), k)
	g.LEAQ(operand.Mem{Base: rows, Index: k, Scale: 1}, r)
	mask := g.GP64()
	g.MOVWLZX(operand.Mem{Base: r, Disp: rowActive}, mask.As32())
	g.ANDQ(operand.Mem{Base: arg, Disp: visitRunning}, mask)
	g.JZ(operand.LabelRef("next"))

	// Prefetch for the coming rows.
	idx, val, len := g.row(r)
	ahead := g.prefetch(order, n, rows, dual, idx, len)
	g.count(mask, len, arg)
	acc := g.start(ops(biasLine), biasValue)
	g.dot("", acc, idx, val, len, w, ahead)
	score := acc[0]

	pos := g.GP64()
	g.MOVWLZX(operand.Mem{Base: r, Disp: rowPos}, pos.As32())
	drop, moving := g.GP64(), g.GP64()
	delta := g.vec()
	for p := range score {
		kmask, kneg, kpos := g.K(), g.K(), g.K()
		if p > 0 {
			g.SHRL(operand.U8(8), mask.As32())
			g.SHRL(operand.U8(8), pos.As32())
		}
		g.KMOVW(mask.As32(), kmask)
		g.KMOVW(pos.As32(), kpos)
		g.KNOTW(kpos, kneg)
		m, old, bound := g.ZMM(), g.ZMM(), g.ZMM()
		g.xor(sign, score[p], kneg, score[p])
		g.sub(one, score[p], m)
		g.mov(operand.Mem{Base: a, Disp: p * g.width}, old)
		g.mov(vec(cNeg, p), bound)
		g.mov(vec(cPos, p), kpos, bound)
		grad, soft := m, one
		h, gap, t := g.ZMM(), g.ZMM(), g.ZMM()
		g.sub(m, zero, h)
		g.max(zero, h, h)
		g.mul(m, old, t)
		if squared {
			soft, grad = g.ZMM(), g.ZMM()
			g.mov(vec(softNeg, p), soft)
			g.mov(vec(softPos, p), kpos, soft)
			as := g.ZMM()
			g.mul(soft, old, as)
			g.add(as, m, grad)
			g.mul(h, h, h)
			g.mul(h, bound, gap)
			g.add(t, gap, gap)
			g.mul(half, as, as)
			g.mul(as, old, as)
			g.add(as, gap, gap)
		} else {
			g.mul(h, bound, gap)
			g.add(t, gap, gap)
		}
		g.estimated(gap, kmask, arg, p)
		// Find the lanes that drop the row, and those that may move.
		klow, khigh, kdrop := g.K(), g.K(), g.K()
		g.cmp(cmpEq, zero, old, klow)
		g.cmp(cmpGt, vec(upper, p), grad, klow, kdrop)
		proj := g.ZMM()
		g.VMOVAPS(grad, proj)
		g.min(zero, grad, klow, proj)
		if !squared {
			kd := g.K()
			g.cmp(cmpEq, bound, old, khigh)
			g.KANDNW(khigh, klow, khigh)
			g.cmp(cmpLt, vec(lower, p), grad, khigh, kd)
			g.KORW(kd, kdrop, kdrop)
			g.max(zero, grad, khigh, proj)
		}
		g.KANDW(kmask, kdrop, kdrop)
		kstay, kmove := g.K(), g.K()
		g.KANDNW(kmask, kdrop, kstay)
		g.bounds(proj, kstay, vec(newUpper, p), vec(newLower, p))
		g.cmp(cmpNeq, zero, proj, kstay, kmove)
		d := g.GP32()
		g.KMOVW(kdrop, d)
		if p == 0 {
			g.MOVL(d, drop.As32())
		} else {
			g.SHLL(operand.U8(8), d)
			g.ORL(d, drop.As32())
		}
		// Compute the step of the lanes that may move.
		scale, now := g.ZMM(), g.ZMM()
		g.value(operand.Mem{Base: r, Disp: rowScale}, scale)
		skip := fmt.Sprintf("still%d", p)
		if p == 0 {
			g.XORL(moving.As32(), moving.As32())
		}
		g.VPXORD(delta[p], delta[p], delta[p])
		g.KORTESTW(kmove, kmove)
		g.JZ(operand.LabelRef(skip))
		if squared {
			g.add(soft, scale, scale)
			g.div(scale, one, scale)
		}
		g.mul(scale, grad, now)
		g.sub(now, old, now)
		g.max(zero, now, now)
		if !squared {
			g.min(bound, now, now)
		}
		kchg := g.K()
		g.cmp(cmpNeq, old, now, kmove, kchg)
		g.mov(now, kchg, operand.Mem{Base: a, Disp: p * g.width})
		g.sub(old, now, now)
		g.xor(sign, now, kneg, now)
		g.mov(now, kchg, delta[p])
		km := g.GP32()
		g.KMOVW(kchg, km)
		g.ORL(km, moving.As32())
		g.Label(skip)
	}
	g.NOTL(drop.As32())
	g.ANDW(drop.As16(), operand.Mem{Base: r, Disp: rowActive})
	g.TESTL(moving.As32(), moving.As32())
	g.JZ(operand.LabelRef("next"))
	g.MOVW(operand.U16(1), operand.Mem{Base: r, Disp: rowMoved})
	g.MOVQ(operand.Mem{Base: r, Disp: rowIdx}, idx)
	g.MOVQ(operand.Mem{Base: r, Disp: rowVal}, val)
	g.MOVL(operand.Mem{Base: r, Disp: rowN}, len.As32())
	for p := range delta {
		t := g.ZMM()
		g.mul(delta[p], biasValue, t)
		g.add(t, biasLine[p], biasLine[p])
	}
	g.move("", delta, idx, val, len, w)
	g.Label("next")
	g.ADDQ(operand.Imm(4), order)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	last := load(c, arg, visitLast)
	for p := range biasLine {
		g.mov(biasLine[p], operand.Mem{Base: last, Disp: p * g.width})
	}
	g.VZEROUPPER()
	g.RET()
}

// estimated adds the gap of the lanes in k to the estimate, in float64.
func (g isa) estimated(gap reg.VecVirtual, k reg.Register, arg reg.Register, p int) {
	g.mov_z(gap, k, gap)
	at := visitBias + estimate*lanes*g.size
	if g.size == 8 {
		m := operand.Mem{Base: arg, Disp: at + 64*p}
		t := g.ZMM()
		g.VADDPD(m, gap, t)
		g.VMOVUPD(t, m)
		return
	}
	lo, hi := g.ZMM(), g.ZMM()
	g.VCVTPS2PD(gap.AsY(), lo)
	g.VEXTRACTF64X4(operand.Imm(1), gap, hi.AsY())
	g.VCVTPS2PD(hi.AsY(), hi)
	for i, v := range []reg.VecVirtual{lo, hi} {
		m := operand.Mem{Base: arg, Disp: at + 64*i}
		g.VADDPD(m, v, v)
		g.VMOVUPD(v, m)
	}
}

func (g isa) mov_z(src reg.VecVirtual, k reg.Register, dst reg.VecVirtual) {
	if g.size == 8 {
		g.VMOVUPD_Z(src, k, dst)
		return
	}
	g.VMOVUPS_Z(src, k, dst)
}

// bounds widens the epoch's bounds by the projected gradients of the lanes in k.
func (g isa) bounds(proj reg.VecVirtual, k reg.Register, top, bottom operand.Mem) {
	t, b := g.ZMM(), g.ZMM()
	g.mov(top, t)
	g.max(t, proj, k, t)
	g.mov(t, top)
	g.mov(bottom, b)
	g.min(b, proj, k, b)
	g.mov(b, bottom)
}
