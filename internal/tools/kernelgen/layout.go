package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	lanes = 16
	parts = 4 // partial sums of a score
)

// Fields of mapper's rowRef, 32 bytes long.
const (
	rowIdx    = 0
	rowVal    = 8
	rowN      = 16
	rowRoom   = 20
	rowMoved  = 22
	rowScale  = 24
	rowActive = 28
	rowPos    = 30
)

// Fields of mapper's sweep; vectors of lanes follow from sweepBias on, in this order.
const (
	sweepOrder   = 0
	sweepN       = 8
	sweepRows    = 16
	sweepDual    = 24
	sweepW       = 32
	sweepLast    = 40
	sweepRunning = 48
	sweepVisits  = 56
	sweepBias    = 128
)

// vectors of a sweep, behind sweepBias.
const (
	bias = iota
	upper
	lower
	newUpper
	newLower
	cPos
	cNeg
	softPos
	softNeg
	estimate
)

// Fields of mapper's scoring.
const (
	scoreBegin   = 0
	scoreN       = 8
	scoreIdx     = 16
	scoreVal     = 24
	scoreW       = 32
	scoreLast    = 40
	scoreOut     = 48
	scoreLow     = 56
	scoreEntries = 64
	scoreBias    = 128
	scoreFloor   = 192
)

// Fields of mapper's adding.
const (
	addBegin = 0
	addN     = 8
	addIdx   = 16
	addVal   = 24
	addW     = 32
	addLast  = 40
	addCoef  = 48
	addBias  = 128
)

// Fields of mapper's exacting.
const (
	exactIdx  = 0
	exactVal  = 8
	exactN    = 16
	exactW    = 24
	exactLast = 32
	exactBias = 48
	exactOut  = 64
)

// Fields of mapper's gathering and, by the same names, of starting.
const (
	gatherRows  = 0
	gatherN     = 8
	gatherLive  = 16
	gatherDual  = 24
	gatherV     = 32
	gatherLast  = 40
	gatherStiff = 48
	gatherBias  = 56
	startBias   = 48
)

// Fields of mapper's spreading.
const (
	spreadW    = 0
	spreadY    = 8
	spreadN    = 16
	spreadMask = 24
	spreadAt   = 32
)

// Fields of mapper's denseSweep; vectors of lanes follow from denseUpper on, in the order below.
const (
	denseOrder = 0
	denseN     = 8
	denseKept  = 16
	denseLeft  = 24
	denseX     = 32
	denseLines = 40
	denseRows  = 48
	denseW     = 56
	denseUpper = 64
)

const (
	denseUpperOf = iota
	denseLowerOf
	denseNewUpper
	denseNewLower
	denseEstimate
)

// load reads a 64-bit field of the argument.
func load(c *build.Context, arg reg.Register, disp int) reg.GPVirtual {
	r := c.GP64()
	c.MOVQ(operand.Mem{Base: arg, Disp: disp}, r)
	return r
}

// begin opens a kernel with one pointer as its argument.
func begin(c *build.Context, name, doc string) reg.Register {
	c.Function(name)
	c.Doc(doc)
	c.SignatureExpr("func(e *byte)")
	c.Attributes(noSplit)
	arg := c.GP64()
	c.Load(c.Param("e"), arg)
	return arg
}
