package mapper

// Scorer scores rows at up to Lanes vectors by the float32 kernels. For one goroutine.
type Scorer struct{ tile }

// NewScorer is a scorer of the problem's rows.
func (p *Problem) NewScorer() *Scorer { return &Scorer{newTile(p)} }

// Weights are the vectors, feature by feature, the bias last: set them before Rows is called.
func (s *Scorer) Weights() [][Lanes]float32 { return s.w }

// ScoreRows is the greatest number of rows that Rows scores at a time.
const ScoreRows = scoreChunk

// Rows scores rows from..from+n-1, n at most ScoreRows and from a multiple of it. Bit l of
// low[i] says that row from+i's score at vector l is not below floor.
func (s *Scorer) Rows(from, n int, floor float32, out *[ScoreRows][Lanes]float32) (low []uint16) {
	for l := range s.score.floor {
		s.score.floor[l] = floor
	}
	s.scoreRows(s.p.X, s.w, from, n, &out[0])
	return s.low[:n]
}

// Norm is the squared norm of row i, bias included.
func (p *Problem) Norm(i int) float64 { return p.norm[i] }

// Rounding bounds the error of a float32 score of row i at w by Rounding(i) ||w||.
func (p *Problem) Rounding(i int) float64 {
	idx, _ := p.X.Row(i)
	return rounding(len(idx), p.norm[i])
}

// RowC is C of row i, its weight included.
func (p *Problem) RowC(i int) float64 { return p.weighted(uint32(i), p.C) }
