package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// open starts a kernel with a name and a width. twin names its twin in Go.
func (g isa) open(name, twin string) reg.Register {
	full := fmt.Sprint(name, 8*g.width)
	return begin(g.Context, full, fmt.Sprintf("%s is %s in %s.", full, twin, map[int]string{32: "AVX2",
		64: "AVX-512"}[g.width]))
}

// entries advances idx and val of a shard to the start of the first row.
func (g isa) entries(bounds, idx, val reg.Register) {
	at := load(g.Context, bounds, 0)
	g.LEAQ(operand.Mem{Base: idx, Index: at, Scale: 4}, idx)
	g.LEAQ(operand.Mem{Base: val, Index: at, Scale: 4}, val)
}

// length returns the number of the row's entries.
func (g isa) length(bounds reg.Register) reg.GPVirtual {
	n := load(g.Context, bounds, 8)
	g.SUBQ(operand.Mem{Base: bounds}, n)
	return n
}

// scoreRows writes mapper's scoreRows.
func scoreRows(g isa) {
	arg := g.open("score", "scoreRows")
	bounds, n := load(g.Context, arg, scoreBegin), load(g.Context, arg, scoreN)
	idx, val := load(g.Context, arg, scoreIdx), load(g.Context, arg, scoreVal)
	w, out, low := load(g.Context, arg, scoreW), load(g.Context, arg, scoreOut), load(g.Context, arg, scoreLow)
	end := load(g.Context, arg, scoreEntries)
	g.LEAQ(operand.Mem{Base: idx, Index: end, Scale: 4}, end)
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.entries(bounds, idx, val)
	g.Label("row")
	len := g.length(bounds)
	// Prefetch approximately the lines of the row after the next one.
	ahead, over := g.GP64(), g.GP64()
	g.LEAQ(operand.Mem{Base: idx, Index: len, Scale: 8}, ahead)
	g.LEAQ(operand.Mem{Base: ahead, Index: len, Scale: 4}, over)
	g.CMPQ(over, end)
	g.CMOVQHI(idx, ahead)
	b, last := g.reg(), load(g.Context, arg, scoreLast)
	var line []operand.Op
	for p := range g.vec() {
		line = append(line, operand.Mem{Base: last, Disp: p * g.width})
	}
	g.VMOVUPS(operand.Mem{Base: arg, Disp: scoreBias}, b)
	acc := g.start(line, b)
	g.dot("", acc, idx, val, len, w, ahead)
	// dot leaves idx and val at the rest of the row.
	rest := g.length(bounds)
	g.ANDQ(operand.Imm(parts-1), rest)
	g.LEAQ(operand.Mem{Base: idx, Index: rest, Scale: 4}, idx)
	g.LEAQ(operand.Mem{Base: val, Index: rest, Scale: 4}, val)
	lows := g.GP32()
	for p, s := range acc[0] {
		floor := operand.Mem{Base: arg, Disp: scoreFloor + p*g.width}
		g.VMOVUPS(s, operand.Mem{Base: out, Disp: p * g.width})
		m := g.GP32()
		if g.width == 64 {
			k := g.K()
			g.VCMPPS(cmpNlt, floor, s, k)
			g.KMOVW(k, m)
		} else {
			g.VCMPPS(cmpNlt, floor, s, s)
			g.VMOVMSKPS(s, m)
		}
		if p == 0 {
			g.MOVL(m, lows)
			continue
		}
		g.SHLL(operand.U8(8), m)
		g.ORL(m, lows)
	}
	g.MOVW(lows.As16(), operand.Mem{Base: low})
	g.ADDQ(operand.Imm(64), out)
	g.ADDQ(operand.Imm(2), low)
	g.ADDQ(operand.Imm(8), bounds)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// exactRow writes mapper's exactRow.
func exactRow(g isa) {
	arg := g.open("exact", "exactRow")
	idx, val, n := load(g.Context, arg, exactIdx), load(g.Context, arg, exactVal), load(g.Context, arg, exactN)
	w, last := load(g.Context, arg, exactW), load(g.Context, arg, exactLast)
	g.size = 8
	acc := g.vec()
	b := g.reg()
	g.VBROADCASTSD(operand.Mem{Base: arg, Disp: exactBias}, b)
	half := g.width / 2 // bytes of float32 that fill a register of float64
	for p := range acc {
		g.VCVTPS2PD(operand.Mem{Base: last, Disp: half * p}, acc[p])
		g.VMULPD(acc[p], b, acc[p])
	}
	g.TESTQ(n, n)
	g.JZ(operand.LabelRef("end"))
	g.size = 4 // of the tile's lines
	g.Label("entry")
	f := g.line(operand.Mem{Base: idx})
	x := g.reg()
	if g.width == 64 {
		g.VCVTPS2PD_BCST(operand.Mem{Base: val}, x)
	} else {
		g.VBROADCASTSS(operand.Mem{Base: val}, x.AsX())
		g.VCVTPS2PD(x.AsX(), x)
	}
	for p := range acc {
		t := g.reg()
		g.VCVTPS2PD(operand.Mem{Base: w, Index: f, Scale: 1, Disp: half * p}, t)
		g.VMULPD(t, x, t)
		g.VADDPD(t, acc[p], acc[p])
	}
	g.ADDQ(operand.Imm(4), idx)
	g.ADDQ(operand.Imm(4), val)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("entry"))
	g.Label("end")
	for p := range acc {
		g.VMOVUPD(acc[p], operand.Mem{Base: arg, Disp: exactOut + g.width*p})
	}
	g.VZEROUPPER()
	g.RET()
}

// addRows writes mapper's addRows.
func addRows(g isa) {
	arg := g.open("add", "addRows")
	bounds, n := load(g.Context, arg, addBegin), load(g.Context, arg, addN)
	idx, val := load(g.Context, arg, addIdx), load(g.Context, arg, addVal)
	w, coef, last := load(g.Context, arg, addW), load(g.Context, arg, addCoef), load(g.Context, arg, addLast)
	b, delta := g.reg(), g.vec()
	g.VMOVUPS(operand.Mem{Base: arg, Disp: addBias}, b)
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.entries(bounds, idx, val)
	g.Label("row")
	len := g.length(bounds)
	for p := range delta {
		t, line := g.reg(), operand.Mem{Base: last, Disp: p * g.width}
		g.VMOVUPS(operand.Mem{Base: coef, Disp: p * g.width}, delta[p])
		g.VMULPS(delta[p], b, t)
		g.VADDPS(line, t, t)
		g.VMOVUPS(t, line)
	}
	g.move("", delta, idx, val, len, w)
	g.ADDQ(operand.Imm(64), coef)
	g.ADDQ(operand.Imm(8), bounds)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// spreadLine writes mapper's spreadLine.
func spreadLine(g isa) {
	arg := g.open("spread", "spreadLine")
	w, y, n, mask := load(g.Context, arg, spreadW), load(g.Context, arg, spreadY), load(g.Context, arg, spreadN),
		load(g.Context, arg, spreadMask)
	k := g.K()
	var in []reg.VecVirtual // AVX2: the lanes of mask
	if g.width == 64 {
		g.KMOVW(mask.As32(), k)
	} else {
		in = []reg.VecVirtual{g.lanesOf(mask.As32(), 0), g.lanesOf(mask.As32(), 1)}
	}
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.Label("feature")
	x, to := g.reg(), operand.Mem{Base: w}
	g.VBROADCASTSS(operand.Mem{Base: y}, x)
	if g.width == 64 {
		g.VMOVUPS(x, k, to)
	}
	for p, m := range in {
		g.VMASKMOVPS(x, m, to.Offset(32*p))
	}
	g.ADDQ(operand.Imm(4), y)
	g.ADDQ(operand.Imm(64), w)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("feature"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// gatherDuals writes mapper's gatherRows. Lanes without a dual add zero. A half of the lanes
// without any is skipped.
func gatherDuals(g isa) {
	arg := g.open("gather", "gatherRows")
	r, n := load(g.Context, arg, gatherRows), load(g.Context, arg, gatherN)
	lives, dual := load(g.Context, arg, gatherLive), load(g.Context, arg, gatherDual)
	v, last, support := load(g.Context, arg, gatherV), load(g.Context, arg, gatherLast),
		load(g.Context, arg, gatherSupport)
	g.size = 8
	b, sign := g.reg(), g.reg()
	g.VBROADCASTSD(operand.Mem{Base: arg, Disp: gatherBias}, b)
	bits := g.GP64()
	g.MOVQ(operand.U64(1<<63), bits)
	g.VMOVQ(bits, sign.AsX())
	g.VBROADCASTSD(sign.AsX(), sign)
	coef := g.vec()
	half := len(coef) / 2
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.Label("row")
	live := g.GP64()
	g.MOVWLZX(operand.Mem{Base: lives}, live.As32())
	g.TESTL(live.As32(), live.As32())
	g.JZ(operand.LabelRef("next"))
	neg := g.GP64()
	g.MOVWLZX(operand.Mem{Base: r, Disp: rowPos}, neg.As32())
	g.NOTL(neg.As32())
	for p := range coef {
		at := operand.Mem{Base: dual, Disp: p * g.width}
		g.VMOVUPD(at, coef[p])
		if g.width == 64 {
			k, m := g.K(), g.GP32()
			g.MOVL(neg.As32(), m)
			g.SHRL(operand.U8(8*p), m)
			g.KMOVW(m, k)
			g.VPXORQ(sign, coef[p], k, coef[p])
		} else {
			m := g.quarterOf(neg.As32(), p)
			g.VANDPD(sign, m, m)
			g.VXORPD(m, coef[p], coef[p])
		}
		t, line := g.reg(), operand.Mem{Base: last, Disp: p * g.width}
		g.VMULPD(coef[p], b, t)
		g.VADDPD(line, t, t)
		g.VMOVUPD(t, line)
	}
	idx, val, len := g.row(r)
	g.TESTQ(len, len)
	g.JZ(operand.LabelRef("next"))
	g.TESTL(operand.U32(0xff00), live.As32())
	g.JZ(operand.LabelRef("low"))
	g.TESTL(operand.U32(0x00ff), live.As32())
	g.JZ(operand.LabelRef("high"))
	entries := func(label string, from, to int) {
		g.Label(label)
		f, x := g.GP64(), g.reg()
		g.MOVL(operand.Mem{Base: val}, f.As32())
		g.ADDL(f.As32(), f.As32()) // without the sign
		g.JZ(operand.LabelRef(label + "zero"))
		g.MOVL(operand.Mem{Base: idx}, f.As32())
		g.ORW(live.As16(), operand.Mem{Base: support, Index: f, Scale: 2})
		g.SHLQ(operand.U8(7), f)
		if g.width == 64 {
			g.VCVTPS2PD_BCST(operand.Mem{Base: val}, x)
		} else {
			g.VBROADCASTSS(operand.Mem{Base: val}, x.AsX())
			g.VCVTPS2PD(x.AsX(), x)
		}
		for p := from; p < to; p++ {
			t, line := g.reg(), operand.Mem{Base: v, Index: f, Scale: 1, Disp: p * g.width}
			g.VMULPD(coef[p], x, t)
			g.VADDPD(line, t, t)
			g.VMOVUPD(t, line)
		}
		g.Label(label + "zero")
		g.ADDQ(operand.Imm(4), idx)
		g.ADDQ(operand.Imm(4), val)
		g.DECQ(len)
		g.JNZ(operand.LabelRef(label))
		g.JMP(operand.LabelRef("next"))
	}
	entries("both", 0, 2*half)
	entries("low", 0, half)
	entries("high", half, 2*half)
	g.Label("next")
	g.ADDQ(operand.Imm(2), lives)
	g.ADDQ(operand.Imm(128), dual)
	g.ADDQ(operand.Imm(32), r)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// layRows writes mapper's layRows.
func layRows(g isa) {
	arg := g.open("start", "layRows")
	r, n := load(g.Context, arg, gatherRows), load(g.Context, arg, gatherN)
	lives, dual := load(g.Context, arg, gatherLive), load(g.Context, arg, gatherDual)
	w, last := load(g.Context, arg, gatherV), load(g.Context, arg, gatherLast)
	b, sign := g.reg(), g.reg()
	g.VBROADCASTSS(operand.Mem{Base: arg, Disp: startBias}, b)
	bits := g.GP32()
	g.MOVL(operand.U32(1<<31), bits)
	g.VMOVD(bits, sign.AsX())
	g.VBROADCASTSS(sign.AsX(), sign)
	delta := g.vec()
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.Label("row")
	live := g.GP64()
	g.MOVWLZX(operand.Mem{Base: lives}, live.As32())
	g.TESTL(live.As32(), live.As32())
	g.JZ(operand.LabelRef("next"))
	neg := g.GP64()
	g.MOVWLZX(operand.Mem{Base: r, Disp: rowPos}, neg.As32())
	g.NOTL(neg.As32())
	for p := range delta {
		g.VMOVUPS(operand.Mem{Base: dual, Disp: p * g.width}, delta[p])
		if g.width == 64 {
			k := g.K()
			g.KMOVW(neg.As32(), k)
			g.VPXORD(sign, delta[p], k, delta[p])
		} else {
			m := g.lanesOf(neg.As32(), p)
			g.VANDPS(sign, m, m)
			g.VXORPS(m, delta[p], delta[p])
		}
		t, line := g.reg(), operand.Mem{Base: last, Disp: p * g.width}
		g.VMULPS(delta[p], b, t)
		g.VADDPS(line, t, t)
		g.VMOVUPS(t, line)
	}
	idx, val, len := g.row(r)
	g.move("", delta, idx, val, len, w)
	g.Label("next")
	g.ADDQ(operand.Imm(2), lives)
	g.ADDQ(operand.Imm(64), dual)
	g.ADDQ(operand.Imm(32), r)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}
