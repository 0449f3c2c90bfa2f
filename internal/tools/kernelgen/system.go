package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels of internal/methods/hblr/solver's systems, in AVX2 and float32 with sums in float64. Their twins in
// Go are in its loops.go.

// Fields of internal/methods/hblr/solver's product.
const (
	productBegin = 8 * iota
	productN
	productIdx
	productVal
	productEntries
	productTile
	productLast
	productCurve
	productBias
	productSum
)

// Fields of internal/methods/hblr/solver's columnLoop.
const (
	columnN = 8 * iota
	columnTile
	columnStep
	columnResidual
	columnInverse
	columnDiagonal
	columnPull
	columnFactor
	columnShare = columnFactor + 4*lanes
	columnSum   = columnShare + 4*lanes
	columnAlong = columnSum + 8*lanes
)

// systems writes the kernels for lines of eight and of sixteen lanes.
func systems(c *build.Context) {
	for _, n := range []int{8, 16} {
		g := isa{c, 32, 4, n}
		productRows(g)
		turnColumns(g, noFar)
		advanceColumns(g, noFar)
		turnColumns(g, sumsFar)
		advanceColumns(g, takesFar)
	}
}

// sums returns the registers of the lanes' sums in float64: four lanes each.
func (g isa) sums(arg reg.Register, disp int) (v []reg.VecVirtual) {
	for p := range 2 * len(g.vec()) {
		v = append(v, g.YMM())
		g.VMOVUPD(operand.Mem{Base: arg, Disp: disp + 32*p}, v[p])
	}
	return v
}

// keep stores the registers of sums.
func (g isa) keep(v []reg.VecVirtual, arg reg.Register, disp int) {
	for p := range v {
		g.VMOVUPD(v[p], operand.Mem{Base: arg, Disp: disp + 32*p})
	}
}

// addProduct adds x y, exact in float64, to two registers of sums.
func (g isa) addProduct(x, y reg.VecVirtual, sums []reg.VecVirtual) {
	a, b := g.YMM(), g.YMM()
	g.VCVTPS2PD(x.AsX(), a)
	g.VCVTPS2PD(y.AsX(), b)
	g.VMULPD(a, b, a)
	g.VADDPD(a, sums[0], sums[0])
	g.VEXTRACTF128(operand.Imm(1), x, a.AsX())
	g.VEXTRACTF128(operand.Imm(1), y, b.AsX())
	g.VCVTPS2PD(a.AsX(), a)
	g.VCVTPS2PD(b.AsX(), b)
	g.VMULPD(a, b, a)
	g.VADDPD(a, sums[1], sums[1])
}

// productRows writes internal/methods/hblr/solver's productRows.
func productRows(g isa) {
	name := fmt.Sprintf("product%d", g.lanes)
	arg := begin(g.Context, name, fmt.Sprintf("%s is productRows of %d lanes in AVX2.", name, g.lanes))
	bounds, n := load(g.Context, arg, productBegin), load(g.Context, arg, productN)
	idx, val := load(g.Context, arg, productIdx), load(g.Context, arg, productVal)
	w, last, curve := load(g.Context, arg, productTile), load(g.Context, arg, productLast),
		load(g.Context, arg, productCurve)
	end := load(g.Context, arg, productEntries)
	g.LEAQ(operand.Mem{Base: idx, Index: end, Scale: 4, Disp: -4}, end)
	width := g.lanes * g.size
	both := isa{g.Context, 32, 4, 2 * g.lanes} // of both lines
	sums := g.sums(arg, productSum)
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.entries(bounds, idx, val)
	g.Label("row")
	count := g.length(bounds)
	acc := g.vec()
	for p := range acc {
		g.VXORPS(acc[p], acc[p], acc[p])
	}
	g.TESTQ(count, count)
	g.JLE(operand.LabelRef("sum"))
	g.Label("entry")
	f, x := both.offset(operand.Mem{Base: idx}), g.YMM()
	g.VBROADCASTSS(operand.Mem{Base: val}, x)
	both.ahead(idx, end, w)
	for p := range acc {
		t := g.YMM()
		g.VMULPS(operand.Mem{Base: w, Index: f, Scale: 1, Disp: 32 * p}, x, t)
		g.VADDPS(t, acc[p], acc[p])
	}
	g.ADDQ(operand.Imm(4), idx)
	g.ADDQ(operand.Imm(4), val)
	g.DECQ(count)
	g.JNZ(operand.LabelRef("entry"))
	g.Label("sum")
	bias := g.YMM()
	g.VBROADCASTSS(operand.Mem{Base: arg, Disp: productBias}, bias)
	for p := range acc {
		t, v := g.YMM(), g.YMM()
		g.VMULPS(operand.Mem{Base: last, Disp: 32 * p}, bias, t)
		g.VADDPS(t, acc[p], acc[p])
		g.VMULPS(operand.Mem{Base: curve, Disp: 32 * p}, acc[p], v)
		g.addProduct(acc[p], v, sums[2*p:])
		g.VMOVAPS(v, acc[p])
		g.VMULPS(v, bias, t)
		z := operand.Mem{Base: last, Disp: width + 32*p}
		g.VADDPS(z, t, t)
		g.VMOVUPS(t, z)
	}
	g.ADDQ(operand.Imm(uint64(width)), curve)
	count = g.length(bounds)
	g.TESTQ(count, count)
	g.JLE(operand.LabelRef("next"))
	from, at := g.GP64(), g.GP64()
	g.MOVQ(count, from)
	g.NEGQ(from)
	g.Label("back")
	f = both.offset(operand.Mem{Base: idx, Index: from, Scale: 4})
	g.LEAQ(operand.Mem{Base: w, Index: f, Scale: 1}, at)
	y := g.YMM()
	g.VBROADCASTSS(operand.Mem{Base: val, Index: from, Scale: 4}, y)
	for p := range acc {
		t, z := g.YMM(), operand.Mem{Base: at, Disp: width + 32*p}
		g.VMULPS(acc[p], y, t)
		g.VADDPS(z, t, t)
		g.VMOVUPS(t, z)
	}
	g.INCQ(from)
	g.JNZ(operand.LabelRef("back"))
	g.Label("next")
	g.ADDQ(operand.Imm(8), bounds)
	g.DECQ(n)
	g.JNZ(operand.LabelRef("row"))
	g.Label("end")
	g.keep(sums, arg, productSum)
	g.VZEROUPPER()
	g.RET()
}

// What a loop over the columns does with the far rows, which have a vector v.
const (
	noFar    = iota // there are none
	sumsFar         // it adds v.p up
	takesFar        // it takes their shares of v
)

// columns writes a loop over the columns; body gets a register's part.
func (g isa) columns(name, twin string, at []int, far int, body func(tile, z operand.Mem,
	line func(field int) operand.Mem, factor, share reg.VecVirtual, sums, along []reg.VecVirtual)) {
	what := ""
	if far != noFar {
		name, at, what = name+"Far", append(at, columnPull), " with far rows"
	}
	name = fmt.Sprintf("%s%d", name, g.lanes)
	arg := begin(g.Context, name, fmt.Sprintf("%s is %s of %d lanes%s in AVX2.", name, twin, g.lanes, what))
	n, tile := load(g.Context, arg, columnN), load(g.Context, arg, columnTile)
	fields := map[int]reg.GPVirtual{}
	for _, field := range at {
		fields[field] = load(g.Context, arg, field)
	}
	sums, factor := g.sums(arg, columnSum), g.vec()
	for p := range factor {
		g.VMOVUPS(operand.Mem{Base: arg, Disp: columnFactor + 32*p}, factor[p])
	}
	along, share := sums, factor // unused without far rows
	switch far {
	case sumsFar:
		along = g.sums(arg, columnAlong)
	case takesFar:
		share = g.vec()
		for p := range share {
			g.VMOVUPS(operand.Mem{Base: arg, Disp: columnShare + 32*p}, share[p])
		}
	}
	width := g.lanes * g.size
	g.TESTQ(n, n)
	g.JLE(operand.LabelRef("end"))
	g.Label("column")
	for p := range factor {
		body(operand.Mem{Base: tile, Disp: 32 * p}, operand.Mem{Base: tile, Disp: width + 32*p},
			func(field int) operand.Mem { return operand.Mem{Base: fields[field], Disp: 32 * p} }, factor[p], share[p],
			sums[2*p:], along[2*p:])
	}
	g.ADDQ(operand.Imm(uint64(2*width)), tile)
	for _, field := range at {
		g.ADDQ(operand.Imm(uint64(width)), fields[field])
	}
	g.DECQ(n)
	g.JNZ(operand.LabelRef("column"))
	g.Label("end")
	g.keep(sums, arg, columnSum)
	if far == sumsFar {
		g.keep(along, arg, columnAlong)
	}
	g.VZEROUPPER()
	g.RET()
}

// turnColumns writes internal/methods/hblr/solver's turnColumns.
func turnColumns(g isa, far int) {
	g.columns("turn", "turnColumns", []int{columnResidual, columnInverse, columnDiagonal}, far,
		func(tile, z operand.Mem, line func(int) operand.Mem, factor, share reg.VecVirtual, sums, along []reg.VecVirtual) {
			x, t := g.YMM(), g.YMM()
			g.VMOVUPS(line(columnResidual), x)
			g.VMULPS(line(columnInverse), x, x)
			g.VMULPS(tile, factor, t)
			g.VADDPS(t, x, x)
			g.VMOVUPS(x, tile)
			g.VMULPS(line(columnDiagonal), x, t)
			g.VMOVUPS(t, z)
			g.addProduct(x, t, sums)
			if far == sumsFar {
				g.VMOVUPS(line(columnPull), t)
				g.addProduct(x, t, along)
			}
		})
}

// advanceColumns writes internal/methods/hblr/solver's advanceColumns.
func advanceColumns(g isa, far int) {
	g.columns("advance", "advanceColumns", []int{columnStep, columnResidual, columnInverse}, far,
		func(tile, z operand.Mem, line func(int) operand.Mem, factor, share reg.VecVirtual, sums, along []reg.VecVirtual) {
			t, x := g.YMM(), g.YMM()
			g.VMULPS(tile, factor, t)
			g.VADDPS(line(columnStep), t, t)
			g.VMOVUPS(t, line(columnStep))
			if far == takesFar {
				g.VMULPS(line(columnPull), share, x)
				g.VADDPS(z, x, x)
				g.VMULPS(x, factor, t)
			} else {
				g.VMULPS(z, factor, t)
			}
			g.VMOVUPS(line(columnResidual), x)
			g.VSUBPS(t, x, x)
			g.VMOVUPS(x, line(columnResidual))
			g.VMULPS(line(columnInverse), x, t)
			g.addProduct(x, t, sums)
		})
}
