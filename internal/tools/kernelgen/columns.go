package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of internal/methods/hblr/solver's lineLoop. Vectors of lanes follow from lineSlope on.
const (
	lineN = 8 * iota
	lineStride
	linePlace
	linePrecision
	lineW
	lineAbove
	lineGradient
	lineH
	lineStep
	lineU
	lineSlope
	lineBend    = lineSlope + 8*lanes
	lineLength  = lineBend + 8*lanes
	lineTotal   = lineLength + 8*lanes
	lineFar     = lineTotal + 8*lanes
	lineRunning = lineFar + 8*lanes
	lineSum     = lineRunning + 8*lanes
)

// walk is a loop over lines of float64, a register of lanes at a time.
type walk struct {
	isa
	arg, at, offset, place reg.GPVirtual
	fields                 map[int]reg.GPVirtual
	sum                    []reg.VecVirtual
}

// of returns the line's part of a field.
func (k *walk) of(field int) operand.Mem {
	return operand.Mem{Base: k.fields[field], Index: k.at, Scale: 1}
}

// lane returns the current lanes of a vector of lanes.
func (k *walk) lane(disp int) operand.Mem {
	return operand.Mem{Base: k.arg, Index: k.offset, Scale: 1, Disp: disp}
}

// read loads the line's part of a field.
func (k *walk) read(field int) reg.VecVirtual {
	x := k.reg()
	k.VMOVUPD(k.of(field), x)
	return x
}

// The uses that a loop makes of the place of each line: none, to skip lines that have one, or to
// write a number there.
const (
	placeless = iota
	skips
	puts
)

// walk writes a loop.
func (g isa) walk(name, twin string, fields []int, sums, use int, body func(k *walk)) {
	if g.width == 64 {
		name += "w"
	}
	k := &walk{isa: g, fields: map[int]reg.GPVirtual{}}
	k.arg = begin(g.Context, name, fmt.Sprintf("%s is %s in %s.", name, twin, g.set())).(reg.GPVirtual)
	for _, field := range fields {
		k.fields[field] = load(g.Context, k.arg, field)
	}
	n, place := load(g.Context, k.arg, lineN), g.GP64()
	k.place = place
	k.offset, k.at = g.GP64(), g.GP64()
	g.XORL(k.offset.As32(), k.offset.As32())
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.Label("part")
	for s := range sums {
		x := g.reg()
		g.VMOVUPD(k.lane(lineSum+8*lanes*s), x)
		k.sum = append(k.sum, x)
	}
	g.MOVQ(k.offset, k.at)
	g.MOVQ(operand.Mem{Base: k.arg, Disp: lineN}, n)
	if use != placeless {
		g.MOVQ(operand.Mem{Base: k.arg, Disp: linePlace}, place)
	}
	g.Label("line")
	if use == skips {
		g.CMPL(operand.Mem{Base: place}, operand.Imm(0))
		g.JNE(operand.LabelRef("next"))
	}
	body(k)
	g.Label("next")
	switch use {
	case skips:
		g.ADDQ(operand.Imm(4), place)
	case puts:
		g.ADDQ(operand.Imm(8), place)
	}
	g.ADDQ(operand.Mem{Base: k.arg, Disp: lineStride}, k.at)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("line"))
	for s, x := range k.sum {
		g.VMOVUPD(x, k.lane(lineSum+8*lanes*s))
	}
	g.ADDQ(operand.Imm(uint64(g.width)), k.offset)
	g.CMPQ(k.offset, operand.Mem{Base: k.arg, Disp: lineStride})
	g.JLT(operand.LabelRef("part"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}

// prior returns A (w-m), w - m and A.
func (k *walk) prior() (own, d, a reg.VecVirtual) {
	d, a, own = k.read(lineW), k.read(linePrecision), k.reg()
	k.VSUBPD(k.of(lineAbove), d, d)
	k.VMULPD(d, a, own)
	return own, d, a
}

// pull returns u and A + D of a column that no near row has, as near.pull in
// internal/methods/hblr/solver does, and A (w-m).
func (k *walk) pull() (u, precision, own reg.VecVirtual) {
	own, _, precision = k.prior()
	u = k.read(lineGradient)
	k.VSUBPD(own, u, u)
	k.VANDPD(k.lane(lineFar), u, u)
	t, more, zero := k.reg(), k.read(lineH), k.reg()
	k.VMULPD(u, u, t)
	k.VDIVPD(k.lane(lineTotal), t, t)
	k.VSUBPD(t, more, more)
	k.clear(zero)
	k.VMAXPD(zero, more, more)
	k.VANDPD(k.lane(lineFar), more, more)
	k.VADDPD(more, precision, precision)
	return u, precision, own
}

// columnLoops writes the loops of internal/methods/hblr/solver over the columns.
func columnLoops(g isa) {
	for _, far := range []bool{false, true} {
		name, fields := "differentiate", []int{linePrecision, lineW, lineAbove, lineGradient, lineH}
		if far {
			name, fields = "differentiateFar", append(fields, lineU)
		}
		g.walk(name, name+"Lines", fields, 3, placeless, func(k *walk) {
			own, d, a := k.prior()
			h, t := k.read(lineH), k.reg()
			k.VSUBPD(k.of(lineGradient), own, own)
			if far {
				u := k.read(lineU)
				k.VMULPD(k.lane(lineSlope), u, t)
				k.VADDPD(t, own, own)
				k.VMULPD(u, u, u)
				k.VMULPD(k.lane(lineBend), u, u)
				k.VADDPD(u, h, h)
				k.VMOVUPD(h, k.of(lineH))
			}
			k.VMOVUPD(own, k.of(lineGradient))
			k.VADDPD(a, h, h)
			k.VMULPD(own, own, own)
			k.VDIVPD(h, own, t)
			k.VADDPD(t, k.sum[0], k.sum[0])
			k.VDIVPD(a, own, t)
			k.VADDPD(t, k.sum[1], k.sum[1])
			k.VMULPD(d, d, d)
			k.VMULPD(a, d, d)
			k.VADDPD(d, k.sum[2], k.sum[2])
		})
	}
	g.walk("spans", "spansLines", []int{linePrecision, lineW, lineAbove}, 2, placeless, func(k *walk) {
		x, t := k.read(lineW), k.reg()
		a := k.reg()
		k.VMULPD(k.of(linePrecision), x, a)
		k.VMULPD(a, x, t)
		k.VADDPD(t, k.sum[0], k.sum[0])
		k.VMULPD(k.of(lineAbove), a, t)
		k.VADDPD(t, k.sum[1], k.sum[1])
	})
	g.walk("bends", "bendsLines", []int{lineGradient, lineH, lineW}, 2, placeless, func(k *walk) {
		x, t := k.read(lineW), k.reg()
		k.VMULPD(k.of(lineGradient), x, t)
		k.VADDPD(t, k.sum[0], k.sum[0])
		k.VMULPD(x, x, x)
		k.VMULPD(k.of(lineH), x, x)
		k.VADDPD(x, k.sum[1], k.sum[1])
	})
	g.walk("totals", "totalsLines", []int{lineW}, 1, skips, func(k *walk) {
		k.VADDPD(k.of(lineW), k.sum[0], k.sum[0])
	})
	g.walk("doubts", "doubtsLines", []int{lineH}, 0, puts, func(k *walk) {
		x, y := k.read(lineH), k.YMM()
		k.VMULPD(k.lane(lineLength), x, x)
		if g.width == 64 {
			k.VEXTRACTF64X4(operand.Imm(1), x, y)
			k.VMAXPD(y, x.AsY(), x.AsY())
		}
		k.VEXTRACTF128(operand.Imm(1), x.AsY(), y.AsX())
		k.VMAXPD(y.AsX(), x.AsX(), x.AsX())
		k.VPERMILPD(operand.Imm(1), x.AsX(), y.AsX())
		k.VMAXSD(y.AsX(), x.AsX(), x.AsX())
		k.VMAXSD(operand.Mem{Base: k.place}, x.AsX(), x.AsX())
		k.VMOVSD(x.AsX(), operand.Mem{Base: k.place})
	})
	g.walk("slopes", "slopesLines", []int{linePrecision, lineW, lineAbove, lineGradient, lineStep}, 3, placeless,
		func(k *walk) {
			d, t, x := k.read(lineStep), k.reg(), k.read(lineW)
			k.VMULPD(k.of(lineGradient), d, t)
			k.VADDPD(t, k.sum[0], k.sum[0])
			k.VMULPD(k.of(linePrecision), d, t)
			k.VSUBPD(k.of(lineAbove), x, x)
			k.VMULPD(t, x, x)
			k.VADDPD(x, k.sum[1], k.sum[1])
			k.VMULPD(d, t, t)
			k.VADDPD(t, k.sum[2], k.sum[2])
		})
	g.walk("step", "stepLines", []int{lineW, lineStep}, 0, placeless, func(k *walk) {
		d := k.read(lineStep)
		k.VMULPD(k.lane(lineLength), d, d)
		k.VADDPD(k.of(lineW), d, d)
		k.VMOVUPD(d, k.of(lineW))
	})
	far := []int{linePrecision, lineW, lineAbove, lineGradient, lineH}
	g.walk("eliminate", "eliminateLines", far, 2, skips, func(k *walk) {
		u, precision, own := k.pull()
		k.VMULPD(u, own, own)
		k.VDIVPD(precision, own, own)
		k.VSUBPD(own, k.sum[1], k.sum[1])
		k.VMULPD(u, u, u)
		k.VDIVPD(precision, u, u)
		k.VADDPD(u, k.sum[0], k.sum[0])
	})
	g.walk("follow", "followLines", append(far, lineStep), 0, skips, func(k *walk) {
		u, precision, own := k.pull()
		k.VMULPD(k.lane(lineSlope), u, u)
		k.VADDPD(u, own, own)
		k.VXORPD(doubles("sign"), own, own)
		k.VDIVPD(precision, own, own)
		k.VANDPD(k.lane(lineRunning), own, own)
		k.VMOVUPD(own, k.of(lineStep))
	})
}
