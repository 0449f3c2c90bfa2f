//go:build amd64 && !purego

package hblr

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
func product8(e *product)

//go:noescape
func turn8(e *columnLoop)

//go:noescape
func advance8(e *columnLoop)

//go:noescape
func product16(e *product)

//go:noescape
func turn16(e *columnLoop)

//go:noescape
func advance16(e *columnLoop)

// native are the kernels in assembly that this CPU supports.
func native() []Kernel {
	if !cpu.X86.HasAVX2 {
		return nil
	}
	type lines = [Lanes / quarter]func(*pass)
	return []Kernel{{
		scores:       lines{scores4, scores8, scores12, scores16},
		gather:       lines{gather4, gather8, gather12, gather16},
		gatherSquare: lines{gatherSquare4, gatherSquare8, gatherSquare12, gatherSquare16},
		gatherSize:   lines{gatherSize4, gatherSize8, gatherSize12, gatherSize16},
		gatherBoth:   lines{gatherBoth4, gatherBoth8, gatherBoth12, gatherBoth16},
		weigh:        weigh,
		products:     [Lanes / eighth]func(*product){product8, product16},
		turns:        [Lanes / eighth]func(*columnLoop){turn8, turn16},
		advances:     [Lanes / eighth]func(*columnLoop){advance8, advance16},
	}}
}
