package mapper

import "math"

// Every entry of a smooth solve's v is nonzero, most of them next to nothing. With
// Options.Trim a lane is solved over those that matter: v is zero outside a set S, and
// optimal within it. What S leaves out is what the certificate says it costs, 1/2 sum of
// G_f^2 outside S (priceLogistic), whatever the curvature; dropping entries of a finished
// solve would cost e'(I+H)^2 e / 2 (decision 11). Parents get G there, so that what is left
// out of many terminals does not add up. Where the loss bends S holds everything: a
// terminal that cannot move by itself is as stiff as its loss.

const (
	// trimCurvature is the bound of the loss's curvature from which on features are in S.
	trimCurvature = 0.25
	// trimBins is the number of classes by size that entries are counted in: eight an
	// octave of finite numbers.
	trimBins  = 0x7f800000 >> trimShift
	trimShift = 20
)

// trimming is the set S of a smooth solve.
type trimming struct {
	in  []uint16                 // by feature: the lanes that have it in S
	sum [trimBins][Lanes]float64 // squares of entries by size
}

// choose sets S anew: without the smallest of v and G that cost half of what they may, at
// the features on which the loss hardly bends. It takes what is left out from v, and says
// whether there was any.
func (e *logit) choose(trim float64) (changed bool) {
	t := e.trimming
	clear(t.in)
	cut := e.cut(trim/2, true)
	for f := range e.v {
		v, g, h := &e.v[f], &e.g[f], &e.stiff[f]
		for l := range v {
			if h[l] >= trimCurvature || float32(math.Abs(float64(v[l]))) >= cut[l] || float32(math.Abs(float64(g[l]))) >= cut[l] {
				t.in[f] |= 1 << l
			} else if v[l] != 0 {
				v[l], changed = 0, true
			}
		}
	}
	return changed
}

// extend takes the largest of what is outside S into it, if that has come to cost more than
// it may, and takes what stays outside from r and its norm.
func (e *logit) extend(trim float64) {
	t := e.trimming
	cut := e.cut(trim, false)
	e.gradient = [Lanes]float64{}
	for f := range e.r {
		r, g := &e.r[f], &e.g[f]
		for l := range r {
			if t.in[f]>>l&1 == 0 {
				if float32(math.Abs(float64(g[l]))) < cut[l] {
					r[l] = 0
					continue
				}
				t.in[f] |= 1 << l
			}
			e.gradient[l] += float64(float64(r[l]) * float64(r[l]))
		}
	}
}

// cut is the size of an entry below which the entries (all, by the larger of v and G, or
// those of G outside S) cost trim or less; trim < 0: that share of 1/2 ||G||^2.
func (e *logit) cut(trim float64, all bool) (cut [Lanes]float32) {
	t := e.trimming
	clear(t.sum[:])
	var size [Lanes]float64
	for f := range e.g {
		for l, x := range &e.g[f] {
			size[l] += float64(float64(x) * float64(x))
			if all {
				x = max(float32(math.Abs(float64(x))), float32(math.Abs(float64(e.v[f][l]))))
			} else if t.in[f]>>l&1 != 0 {
				continue
			}
			t.sum[min(math.Float32bits(x)&^(1<<31)>>trimShift, trimBins-1)][l] += float64(float64(x) * float64(x))
		}
	}
	for l := range cut {
		budget, left := max(2*trim, -trim*size[l]), 0.0
		for k := range t.sum {
			if left += t.sum[k][l]; left > budget {
				break
			}
			cut[l] = math.Float32frombits(uint32(k+1) << trimShift)
		}
	}
	return cut
}

// within clears a tile outside S; at nil: its lines are those of the features.
func (e *logit) within(tile [][Lanes]float32, at []uint32) {
	if e.trimming == nil {
		return
	}
	for k := range tile {
		f := k
		if at != nil {
			f = len(e.g) - 1 // the last line is the bias's
			if k < len(at) {
				f = int(at[k])
			}
		}
		switch in := e.trimming.in[f]; in {
		case 1<<Lanes - 1:
		case 0:
			tile[k] = [Lanes]float32{}
		default:
			for l := range tile[k] {
				if in>>l&1 == 0 {
					tile[k][l] = 0
				}
			}
		}
	}
}

// pulls is what parents get of a lane: v, or G where S leaves v out.
func (e *logit) pulls() [][Lanes]float32 {
	if e.trimming == nil {
		return e.v
	}
	for f := range e.r {
		r, v, g := &e.r[f], &e.v[f], &e.g[f]
		for l := range r {
			if e.trimming.in[f]>>l&1 != 0 {
				r[l] = v[l]
			} else {
				r[l] = g[l]
			}
		}
	}
	return e.r
}

// Threshold is the size below which the squares of vector v, at the listed features, add up
// to 2 trim or less; trim < 0: to that share of all squares.
func Threshold(v []float64, features []uint32, trim float64) float64 {
	if trim == 0 {
		return 0
	}
	var sum [trimBins]float64
	all := 0.0
	for _, f := range features {
		q := float64(v[f] * v[f])
		sum[trimBin(v[f])] += q
		all += q
	}
	budget, left := max(2*trim, -trim*all), 0.0
	for k := range sum {
		if left += sum[k]; left > budget {
			return float64(math.Float32frombits(uint32(k) << trimShift))
		}
	}
	return math.MaxFloat64
}

// trimBin is the class of an entry, by its size rounded towards zero.
func trimBin(x float64) int {
	f := float32(math.Abs(x))
	if float64(f) > math.Abs(x) {
		f = math.Nextafter32(f, 0)
	}
	return int(min(math.Float32bits(f)>>trimShift, trimBins-1))
}
