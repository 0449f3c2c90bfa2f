package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const noSplit = attr.NOSPLIT

func ops(v []reg.VecVirtual) (o []operand.Op) {
	for _, r := range v {
		o = append(o, r)
	}
	return o
}

// isa is an instruction set with registers of width bytes, for elements of size bytes and lines of
// lanes elements. Sixteen lanes of float32 are one register of AVX-512 or two of AVX2, and twice as
// many of float64; four lanes are half a register of AVX2.
type isa struct {
	*build.Context
	width, size, lanes int
}

// reg returns a new vector register.
func (g isa) reg() reg.VecVirtual {
	switch g.width {
	case 16:
		return g.XMM()
	case 32:
		return g.YMM()
	}
	return g.ZMM()
}

// vec returns as many new vector registers as a line takes.
func (g isa) vec() []reg.VecVirtual {
	v := make([]reg.VecVirtual, g.lanes*g.size/g.width)
	for p := range v {
		v[p] = g.reg()
	}
	return v
}

// clear sets a register to zero.
func (g isa) clear(v reg.VecVirtual) {
	if g.width == 64 {
		g.VPXORD(v, v, v)
		return
	}
	g.VXORPS(v, v, v)
}

// pick returns the operation for the element's size.
func (g isa) pick(ps, pd func(...operand.Op)) func(...operand.Op) {
	if g.size == 8 {
		return pd
	}
	return ps
}

func (g isa) add(ops ...operand.Op) { g.pick(g.VADDPS, g.VADDPD)(ops...) }
func (g isa) sub(ops ...operand.Op) { g.pick(g.VSUBPS, g.VSUBPD)(ops...) }
func (g isa) mul(ops ...operand.Op) { g.pick(g.VMULPS, g.VMULPD)(ops...) }
func (g isa) mov(ops ...operand.Op) { g.pick(g.VMOVUPS, g.VMOVUPD)(ops...) }

// value broadcasts a float32 from memory to all lanes of z, converted.
func (g isa) value(m operand.Op, z reg.VecVirtual) {
	if g.size == 8 {
		g.VCVTPS2PD_BCST(m, z)
		return
	}
	g.VBROADCASTSS(m, z)
}

// line returns the byte offset of the tile's line that the index at m names.
func (g isa) line(m operand.Mem) reg.GPVirtual {
	f := g.GP64()
	g.MOVL(m, f.As32())
	g.SHLQ(operand.U8(bits.TrailingZeros(uint(g.lanes*g.size))), f)
	return f
}

// dot adds the row's products to the partial sums acc. The row has n entries at idx and val, which
// move to its end; n is overwritten. If ahead is not nil, it points to indices whose lines are
// prefetched, one per entry.
func (g isa) dot(label string, acc [parts][]reg.VecVirtual, idx, val, n, w reg.Register, ahead reg.Register) {
	entry := func(j, q int) {
		f := g.line(operand.Mem{Base: idx, Disp: 4 * j})
		x := g.reg()
		g.value(operand.Mem{Base: val, Disp: 4 * j}, x)
		for p := range acc[q] {
			t := g.reg()
			g.mul(operand.Mem{Base: w, Index: f, Scale: 1, Disp: p * g.width}, x, t)
			g.add(t, acc[q][p], acc[q][p])
		}
		if ahead != nil {
			h := g.line(operand.Mem{Base: ahead, Disp: 4 * j})
			for p := range acc[q] {
				g.PREFETCHT0(operand.Mem{Base: w, Index: h, Scale: 1, Disp: p * g.width})
			}
		}
	}
	g.SUBQ(operand.Imm(parts), n)
	g.JL(operand.LabelRef(label + "rest"))
	g.Label(label + "four")
	for j := range parts {
		entry(j, j)
	}
	g.ADDQ(operand.Imm(4*parts), idx)
	g.ADDQ(operand.Imm(4*parts), val)
	if ahead != nil {
		g.ADDQ(operand.Imm(4*parts), ahead)
	}
	g.SUBQ(operand.Imm(parts), n)
	g.JGE(operand.LabelRef(label + "four"))
	g.Label(label + "rest")
	g.ADDQ(operand.Imm(parts), n)
	g.JZ(operand.LabelRef(label + "sum"))
	entry(0, 0)
	g.CMPQ(n, operand.Imm(2))
	g.JL(operand.LabelRef(label + "sum"))
	entry(1, 1)
	g.CMPQ(n, operand.Imm(2))
	g.JE(operand.LabelRef(label + "sum"))
	entry(2, 2)
	g.Label(label + "sum")
	for p := range acc[0] {
		g.add(acc[1][p], acc[0][p], acc[0][p])
		g.add(acc[3][p], acc[2][p], acc[2][p])
		g.add(acc[2][p], acc[0][p], acc[0][p])
	}
}

// start clears the partial sums. The bias's product is the first of s0.
func (g isa) start(biasLine []operand.Op, biasValue reg.VecVirtual) (acc [parts][]reg.VecVirtual) {
	for q := range acc {
		acc[q] = g.vec()
		for p := range acc[q] {
			if q == 0 {
				g.mul(biasLine[p], biasValue, acc[0][p])
				continue
			}
			g.clear(acc[q][p])
		}
	}
	return acc
}

// move adds delta times the row to the tile.
func (g isa) move(label string, delta []reg.VecVirtual, idx, val, n, w reg.Register) {
	g.TESTQ(n, n)
	g.JZ(operand.LabelRef(label + "moved"))
	g.Label(label + "move")
	f := g.line(operand.Mem{Base: idx})
	x := g.reg()
	g.value(operand.Mem{Base: val}, x)
	for p := range delta {
		t := g.reg()
		m := operand.Mem{Base: w, Index: f, Scale: 1, Disp: p * g.width}
		g.mul(delta[p], x, t)
		g.add(m, t, t)
		g.mov(t, m)
	}
	g.ADDQ(operand.Imm(4), idx)
	g.ADDQ(operand.Imm(4), val)
	g.DECQ(n)
	g.JNZ(operand.LabelRef(label + "move"))
	g.Label(label + "moved")
}

// row loads the position and the number of a row's entries.
func (g isa) row(r reg.Register) (idx, val, n reg.GPVirtual) {
	idx, val, n = g.GP64(), g.GP64(), g.GP64()
	g.MOVQ(operand.Mem{Base: r, Disp: rowIdx}, idx)
	g.MOVQ(operand.Mem{Base: r, Disp: rowVal}, val)
	g.MOVL(operand.Mem{Base: r, Disp: rowN}, n.As32())
	return idx, val, n
}

// count adds the row's nonzeros, including the bias, times the lanes of mask to the visits.
func (g isa) count(mask reg.GPVirtual, n reg.GPVirtual, arg reg.Register) {
	count, touched := g.GP64(), g.GP64()
	g.POPCNTL(mask.As32(), count.As32())
	g.LEAQ(operand.Mem{Base: n, Disp: 1}, touched)
	g.IMULQ(count, touched)
	g.ADDQ(touched, operand.Mem{Base: arg, Disp: visitVisits})
}

// The numbers of rows ahead of which their records and duals, their entries, and their tile lines
// are prefetched.
const (
	aheadRecord  = 10
	aheadEntries = 5
	aheadLines   = 1
)

// prefetch prefetches the data of coming rows. It returns a pointer to indices of a coming row from
// which len entries may be read ahead. If the coming row is shorter, it is the row's own.
func (g isa) prefetch(order, n, rows, dual, idx, len reg.Register) reg.Register {
	at := func(ahead int) (k reg.GPVirtual) { // order[ahead], or the last one
		k = g.GP64()
		o := g.GP64()
		g.LEAQ(operand.Mem{Base: order, Disp: 4 * ahead}, o)
		g.CMPQ(n, operand.Imm(uint64(ahead)))
		g.CMOVQLE(order, o)
		g.MOVL(operand.Mem{Base: o}, k.As32())
		return k
	}
	k := at(aheadRecord)
	d := g.GP64()
	g.MOVQ(k, d)
	if g.size == 8 {
		g.SHLQ(operand.U8(7), d)
	} else {
		g.SHLQ(operand.U8(6), d)
	}
	g.SHLQ(operand.U8(5), k)
	g.PREFETCHT0(operand.Mem{Base: rows, Index: k, Scale: 1})
	g.PREFETCHT0(operand.Mem{Base: dual, Index: d, Scale: 1})
	if g.size == 8 {
		g.PREFETCHT0(operand.Mem{Base: dual, Index: d, Scale: 1, Disp: 64})
	}
	k = at(aheadEntries)
	g.SHLQ(operand.U8(5), k)
	for _, field := range []int{rowIdx, rowVal} {
		p := g.GP64()
		g.MOVQ(operand.Mem{Base: rows, Index: k, Scale: 1, Disp: field}, p)
		g.PREFETCHT0(operand.Mem{Base: p})
		g.PREFETCHT0(operand.Mem{Base: p, Disp: 64})
	}
	k = at(aheadLines)
	g.SHLQ(operand.U8(5), k)
	ahead, room := g.GP64(), g.GP64()
	g.MOVQ(operand.Mem{Base: rows, Index: k, Scale: 1, Disp: rowIdx}, ahead)
	g.MOVWLZX(operand.Mem{Base: rows, Index: k, Scale: 1, Disp: rowRoom}, room.As32())
	g.CMPQ(room, len)
	g.CMOVQLT(idx, ahead)
	return ahead
}
