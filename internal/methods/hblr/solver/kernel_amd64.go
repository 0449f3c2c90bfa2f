//go:build amd64 && !purego

package solver

import "golang.org/x/sys/cpu"

// The assembly in kernel_amd64.s, written by internal/tools/kernelgen.

//go:noescape
func scores4(e *pass)

//go:noescape
func gather4(e *pass)

//go:noescape
func gatherSquare4(e *pass)

//go:noescape
func gatherSize4(e *pass)

//go:noescape
func gatherBoth4(e *pass)

//go:noescape
func scores8(e *pass)

//go:noescape
func gather8(e *pass)

//go:noescape
func gatherSquare8(e *pass)

//go:noescape
func gatherSize8(e *pass)

//go:noescape
func gatherBoth8(e *pass)

//go:noescape
func scores12(e *pass)

//go:noescape
func gather12(e *pass)

//go:noescape
func gatherSquare12(e *pass)

//go:noescape
func gatherSize12(e *pass)

//go:noescape
func gatherBoth12(e *pass)

//go:noescape
func scores16(e *pass)

//go:noescape
func gather16(e *pass)

//go:noescape
func gatherSquare16(e *pass)

//go:noescape
func gatherSize16(e *pass)

//go:noescape
func gatherBoth16(e *pass)

//go:noescape
func weigh(e *weighing)

//go:noescape
func differentiate(e *lineLoop)

//go:noescape
func differentiateFar(e *lineLoop)

//go:noescape
func slopes(e *lineLoop)

//go:noescape
func step(e *lineLoop)

//go:noescape
func eliminate(e *lineLoop)

//go:noescape
func follow(e *lineLoop)

//go:noescape
func spans(e *lineLoop)

//go:noescape
func bends(e *lineLoop)

//go:noescape
func totals(e *lineLoop)

//go:noescape
func doubts(e *lineLoop)

//go:noescape
func scores8w(e *pass)

//go:noescape
func gather8w(e *pass)

//go:noescape
func gatherSquare8w(e *pass)

//go:noescape
func gatherSize8w(e *pass)

//go:noescape
func gatherBoth8w(e *pass)

//go:noescape
func scores16w(e *pass)

//go:noescape
func gather16w(e *pass)

//go:noescape
func gatherSquare16w(e *pass)

//go:noescape
func gatherSize16w(e *pass)

//go:noescape
func gatherBoth16w(e *pass)

//go:noescape
func weighw(e *weighing)

//go:noescape
func differentiatew(e *lineLoop)

//go:noescape
func differentiateFarw(e *lineLoop)

//go:noescape
func slopesw(e *lineLoop)

//go:noescape
func stepw(e *lineLoop)

//go:noescape
func eliminatew(e *lineLoop)

//go:noescape
func followw(e *lineLoop)

//go:noescape
func spansw(e *lineLoop)

//go:noescape
func bendsw(e *lineLoop)

//go:noescape
func totalsw(e *lineLoop)

//go:noescape
func doubtsw(e *lineLoop)

//go:noescape
func product8(e *product)

//go:noescape
func turn8(e *columnLoop)

//go:noescape
func advance8(e *columnLoop)

//go:noescape
func turnFar8(e *columnLoop)

//go:noescape
func advanceFar8(e *columnLoop)

//go:noescape
func product16(e *product)

//go:noescape
func turn16(e *columnLoop)

//go:noescape
func advance16(e *columnLoop)

//go:noescape
func turnFar16(e *columnLoop)

//go:noescape
func advanceFar16(e *columnLoop)

// native lists the kernels in assembly that this CPU supports.
func native() (all []Kernel) {
	if !cpu.X86.HasAVX2 {
		return nil
	}
	type (
		lines  = [Lanes / quarter]func(*pass)
		system = [Lanes / eighth]func(*columnLoop)
	)
	narrow := &loops{differentiate, differentiateFar, slopes, step, eliminate, follow, spans, bends, totals, doubts}
	k := Kernel{
		scores:       lines{scores4, scores8, scores12, scores16},
		gather:       lines{gather4, gather8, gather12, gather16},
		gatherSquare: lines{gatherSquare4, gatherSquare8, gatherSquare12, gatherSquare16},
		gatherSize:   lines{gatherSize4, gatherSize8, gatherSize12, gatherSize16},
		gatherBoth:   lines{gatherBoth4, gatherBoth8, gatherBoth12, gatherBoth16},
		weighs:       [Lanes / quarter]func(*weighing){weigh, weigh, weigh, weigh},
		loops:        [Lanes / quarter]*loops{narrow, narrow, narrow, narrow},
		products:     [Lanes / eighth]func(*product){product8, product16},
		turns:        system{turn8, turn16},
		advances:     system{advance8, advance16},
		turnsFar:     system{turnFar8, turnFar16},
		advancesFar:  system{advanceFar8, advanceFar16},
	}
	all = []Kernel{k}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		// Lines of four and of twelve lanes have no whole number of wide registers.
		wide := &loops{differentiatew, differentiateFarw, slopesw, stepw, eliminatew, followw, spansw, bendsw, totalsw,
			doubtsw}
		k.scores[1], k.scores[3] = scores8w, scores16w
		k.gather[1], k.gather[3] = gather8w, gather16w
		k.gatherSquare[1], k.gatherSquare[3] = gatherSquare8w, gatherSquare16w
		k.gatherSize[1], k.gatherSize[3] = gatherSize8w, gatherSize16w
		k.gatherBoth[1], k.gatherBoth[3] = gatherBoth8w, gatherBoth16w
		k.weighs[1], k.weighs[3] = weighw, weighw
		k.loops[1], k.loops[3] = wide, wide
		all = []Kernel{k, all[0]}
	}
	return all
}
