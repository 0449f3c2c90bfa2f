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

// Fields of mapper's visitArgs. Vectors of lanes follow from visitBias on, in this order.
const (
	visitOrder   = 0
	visitN       = 8
	visitRows    = 16
	visitDual    = 24
	visitW       = 32
	visitLast    = 40
	visitRunning = 48
	visitVisits  = 56
	visitBias    = 128
)

// Vectors of a sweep, after visitBias.
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

// Fields of mapper's scoreArgs.
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

// Fields of mapper's addArgs.
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

// Fields of mapper's exactArgs.
const (
	exactIdx  = 0
	exactVal  = 8
	exactN    = 16
	exactW    = 24
	exactLast = 32
	exactBias = 48
	exactOut  = 64
)

// Fields of mapper's gatherArgs and, by the same names, of startArgs.
const (
	gatherRows    = 0
	gatherN       = 8
	gatherLive    = 16
	gatherDual    = 24
	gatherV       = 32
	gatherLast    = 40
	gatherSupport = 48
	gatherBias    = 56
	startBias     = 48
)

// Fields of mapper's spreadArgs.
const (
	spreadW    = 0
	spreadY    = 8
	spreadN    = 16
	spreadMask = 24
)

// Fields of mapper's laneArgs. Vectors of lanes follow from laneUpper on, in the order below.
const (
	laneOrder = 0
	laneN     = 8
	laneKept  = 16
	laneLeft  = 24
	laneX     = 32
	laneLines = 40
	laneRows  = 48
	laneW     = 56
	laneUpper = 64
)

const (
	laneUpperOf = iota
	laneLowerOf
	laneNewUpper
	laneNewLower
	laneEstimate
)

// load reads a 64-bit field of the argument.
func load(c *build.Context, arg reg.Register, disp int) reg.GPVirtual {
	r := c.GP64()
	c.MOVQ(operand.Mem{Base: arg, Disp: disp}, r)
	return r
}

// begin starts a kernel with one pointer as its argument.
func begin(c *build.Context, name, doc string) reg.Register {
	c.Function(name)
	c.Doc(doc)
	c.SignatureExpr("func(e *byte)")
	c.Attributes(noSplit)
	arg := c.GP64()
	c.Load(c.Param("e"), arg)
	return arg
}
