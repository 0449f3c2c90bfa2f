package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of internal/methods/msvm/solver's rowArgs.
const (
	classIdx = 8 * iota
	classVal
	classN
	classW
	classLast
	classStride
	classLines
	classOut
	classBias
)

// multiclass writes the kernels of internal/methods/msvm/solver, whose twins are in its kernel.go.
func multiclass(c *build.Context) {
	for _, width := range []int{64, 32} {
		scoreClasses(isa{c, width, 8, 8})
		addClasses(isa{c, width, 8, 8})
	}
}

// atOnce is the number of lines that scoreClasses has in registers.
const atOnce = 4

// wide returns a float64 from memory in all lanes.
func (g isa) wide(m operand.Mem) reg.VecVirtual {
	x := g.reg()
	g.VBROADCASTSD(m, x)
	return x
}

// float returns a float32 from memory in all lanes, converted.
func (g isa) float(m operand.Mem) reg.VecVirtual {
	if g.width == 64 {
		x := g.reg()
		g.VCVTPS2PD_BCST(m, x)
		return x
	}
	return g.widened(m)
}

// scoreClasses writes internal/methods/msvm/solver's scoreLines: four lines at a time, then the
// rest.
func scoreClasses(g isa) {
	arg := g.open("score", "scoreLines")
	w, last, out := load(g.Context, arg, classW), load(g.Context, arg, classLast), load(g.Context, arg, classOut)
	stride, lines := load(g.Context, arg, classStride), load(g.Context, arg, classLines)
	g.Label("lines")
	for n := 1; n < atOnce; n++ {
		g.CMPQ(lines, operand.Imm(uint64(n)))
		g.JE(operand.LabelRef(fmt.Sprint("lines", n)))
	}
	for n := atOnce; n > 0; n-- {
		g.Label(fmt.Sprint("lines", n))
		registers := n * 64 / g.width
		idx, val, left := load(g.Context, arg, classIdx), load(g.Context, arg, classVal), load(g.Context, arg, classN)
		bias := g.wide(operand.Mem{Base: arg, Disp: classBias})
		var acc []reg.VecVirtual
		for p := range registers {
			a := g.reg()
			g.mul(operand.Mem{Base: last, Disp: p * g.width}, bias, a)
			acc = append(acc, a)
		}
		g.TESTQ(left, left)
		g.JZ(operand.LabelRef(fmt.Sprint("done", n)))
		g.Label(fmt.Sprint("entry", n))
		f := g.GP64()
		g.MOVL(operand.Mem{Base: idx}, f.As32())
		g.IMULQ(stride, f)
		x := g.float(operand.Mem{Base: val})
		for p, a := range acc {
			t := g.reg()
			g.mul(operand.Mem{Base: w, Index: f, Scale: 1, Disp: p * g.width}, x, t)
			g.add(t, a, a)
		}
		g.ADDQ(operand.Imm(4), idx)
		g.ADDQ(operand.Imm(4), val)
		g.DECQ(left)
		g.JNZ(operand.LabelRef(fmt.Sprint("entry", n)))
		g.Label(fmt.Sprint("done", n))
		for p, a := range acc {
			g.mov(a, operand.Mem{Base: out, Disp: p * g.width})
		}
		if n == atOnce {
			for _, p := range []reg.Register{w, last, out} {
				g.ADDQ(operand.U32(64*atOnce), p)
			}
			g.SUBQ(operand.Imm(atOnce), lines)
			g.JNZ(operand.LabelRef("lines"))
		}
		g.VZEROUPPER()
		g.RET()
	}
}

// addClasses writes internal/methods/msvm/solver's addLine.
func addClasses(g isa) {
	arg := g.open("add", "addLine")
	idx, val, left := load(g.Context, arg, classIdx), load(g.Context, arg, classVal), load(g.Context, arg, classN)
	w, last, out, stride := load(g.Context, arg, classW), load(g.Context, arg, classLast), load(g.Context, arg, classOut),
		load(g.Context, arg, classStride)
	bias := g.wide(operand.Mem{Base: arg, Disp: classBias})
	delta := g.vec()
	for p, d := range delta {
		g.mov(operand.Mem{Base: out, Disp: p * g.width}, d)
		t, m := g.reg(), operand.Mem{Base: last, Disp: p * g.width}
		g.mul(d, bias, t)
		g.add(m, t, t)
		g.mov(t, m)
	}
	g.TESTQ(left, left)
	g.JZ(operand.LabelRef("end"))
	g.Label("entry")
	f := g.GP64()
	g.MOVL(operand.Mem{Base: idx}, f.As32())
	g.IMULQ(stride, f)
	x := g.float(operand.Mem{Base: val})
	for p, d := range delta {
		t, m := g.reg(), operand.Mem{Base: w, Index: f, Scale: 1, Disp: p * g.width}
		g.mul(d, x, t)
		g.add(m, t, t)
		g.mov(t, m)
	}
	g.ADDQ(operand.Imm(4), idx)
	g.ADDQ(operand.Imm(4), val)
	g.DECQ(left)
	g.JNZ(operand.LabelRef("entry"))
	g.Label("end")
	g.VZEROUPPER()
	g.RET()
}
