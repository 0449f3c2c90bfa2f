package program

import (
	"taxon/internal/methods/corrmnl/solver"
	"taxon/worker/codec"
)

// formatChain is the first byte of a value of the family chain. store/FORMAT.md has the layout.
const formatChain = 0xa1

// encodeState encodes a chain.
func encodeState(s *solver.State) []byte {
	e := codec.Encoder{}
	e.Byte(formatChain)
	e.Uvarint(s.Count)
	e.Uvarint(s.Draws)
	e.Uvarint(len(s.Batches))
	e.Uvarint(len(s.Kept))
	e.F64([]float64{s.LogStep, s.LogMean, s.Error, s.Center, s.E})
	e.F64(s.Phi)
	e.F64(s.T)
	e.F64(s.S)
	for _, b := range s.Batches {
		e.Uvarint(b.Draws)
		e.F64(b.Sum)
		e.F64(b.Square)
	}
	for _, k := range s.Kept {
		e.F32(k)
	}
	return e.B
}

// decodeState decodes a chain of the problem p.
func decodeState(b []byte, p *solver.Problem) (*solver.State, error) {
	d, s := codec.Decoder{B: b}, &solver.State{}
	d.Format(formatChain)
	watched, entries := p.Watched(), len(p.Parent)*p.Columns()
	s.Count, s.Draws = d.Number(1<<40), d.Number(1<<40)
	batches := d.Count(1 + 16*watched)
	kept := d.Count(4 * entries)
	var figures [5]float64
	d.F64(figures[:])
	s.LogStep, s.LogMean, s.Error, s.Center, s.E = figures[0], figures[1], figures[2], figures[3], figures[4]
	list := func(n int) []float64 {
		if 8*n > len(d.B) {
			d.Fail()
			return nil
		}
		x := make([]float64, n)
		d.F64(x)
		return x
	}
	s.Phi, s.T, s.S = list(entries), list(p.Levels), list(p.Features())
	for range batches {
		s.Batches = append(s.Batches, solver.Batch{Draws: d.Number(1 << 40), Sum: list(watched), Square: list(watched)})
	}
	for range kept {
		if 4*entries > len(d.B) {
			d.Fail()
			break
		}
		k := make([]float32, entries)
		d.F32(k)
		s.Kept = append(s.Kept, k)
	}
	return s, d.End("a chain")
}
