package solver

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// jointJob is a soft-max over two blocks of leaves, which share the rows.
type jointJob struct {
	rows   Rows
	blocks []*Block
	w      [][]float64
}

func newJointJob(seed uint64) *jointJob {
	j := &jointJob{rows: sample(seed, 30, 6, true)}
	r := rand.New(rand.NewPCG(seed, 3))
	j.blocks = []*Block{leaves(1, j.rows, 5), leaves(2, j.rows, 2)}
	for _, b := range j.blocks { // one label per row
		for l := range b.Positive {
			b.Positive[l] = nil
		}
	}
	for i := range uint32(j.rows.X.Rows) {
		b, l := j.blocks[0], r.IntN(7)
		if l >= 5 {
			b, l = j.blocks[1], l-5
		}
		b.Positive[l] = append(b.Positive[l], i)
	}
	for _, b := range j.blocks {
		j.w = append(j.w, normals(r, len(b.Positive)*j.rows.Columns()))
	}
	return j
}

// score is w_n.x of a block's leaf.
func (j *jointJob) score(b, l, row int) (sum float64) {
	lanes := len(j.blocks[b].Positive)
	for f, x := range j.rows.dense(row) {
		sum += x * j.w[b][f*lanes+l]
	}
	return sum
}

// normalizer is log sum exp of a row over all leaves.
func (j *jointJob) normalizer(row int) float64 {
	sum := 0.0
	for b, block := range j.blocks {
		for l := range block.Positive {
			sum += math.Exp(j.score(b, l, row))
		}
	}
	return math.Log(sum)
}

// objective is f(W), by its definition.
func (j *jointJob) objective() (sum float64) {
	for i := range j.rows.X.Rows {
		sum += j.rows.Weight[i] * j.normalizer(i)
	}
	for b, block := range j.blocks {
		lanes := len(block.Positive)
		for l, rows := range block.Positive {
			for _, i := range rows {
				sum -= j.rows.Weight[i] * j.score(b, l, int(i))
			}
			for f := range j.rows.Columns() {
				d := j.w[b][f*lanes+l]
				if m := block.Above[l]; m != nil {
					d -= m[f]
				}
				sum += block.Precision[l].At(f) * d * d / 2
			}
		}
	}
	return sum
}

// difference is the central difference of f along one weight.
func (j *jointJob) difference(b, at int) float64 {
	const h = 1e-5
	w := j.w[b][at]
	defer func() { j.w[b][at] = w }()
	j.w[b][at] = w + h
	up := j.objective()
	j.w[b][at] = w - h
	return (up - j.objective()) / (2 * h)
}

// opened returns a block's scratch, with z if it is known.
func (j *jointJob) opened(b int, z []float64) *Scratch {
	s := new(Scratch)
	j.blocks[b].Offset = z
	s.Open(j.rows, j.blocks[b])
	return s
}

// TestJoint checks that a block's part of the gradient is that by differences, that conjugate
// gradients solve Newton's system, and that the line search sees f and its slope.
func TestJoint(t *testing.T) {
	for seed := range uint64(5) {
		j := newJointJob(seed)
		rows, columns := j.rows.X.Rows, j.rows.Columns()

		// The start: z, Soften and the move along which all leaves go.
		var logs, own, drift [][]float64
		for b := range j.blocks {
			message := j.opened(b, nil).JointStart(j.rows, j.w[b])
			logs, own, drift = append(logs, message.Rows), append(own, message.Own), append(drift, message.Columns)
		}
		z, soft := make([]float64, rows), make([]float64, rows)
		LogSums(logs, z)
		for i := range z {
			soft[i] = Soften(z[i], own[0][i]+own[1][i])
		}
		move := j.rows.Follow(z, drift)

		// Gradients.
		var messages []*Message
		var systems []*Joint
		for b, block := range j.blocks {
			s, lanes := j.opened(b, z), len(block.Positive)
			system := j.rows.NewJoint(make([]float64, j.rows.JointSize(lanes)), lanes)
			s.JointMove(j.w[b], system.Step, 0, move)
			messages, systems = append(messages, s.JointNewton(j.rows, j.w[b], system, soft)), append(systems, system)
		}
		for i, x := range z {
			if want := j.normalizer(i); math.Abs(x-want) > 1e-12*(1+math.Abs(want)) {
				t.Fatalf("row %d: z is %g, want %g", i, x, want)
			}
		}
		gradient := make([][]float64, len(j.blocks))
		for b, block := range j.blocks {
			lanes := len(block.Positive)
			for at := range j.w[b] {
				got := -systems[b].Residual[at/lanes*padded(lanes)+at%lanes]
				gradient[b] = append(gradient[b], got)
				if want := j.difference(b, at); math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
					t.Fatalf("block %d, entry %d: gradient %g, by differences %g", b, at, got, want)
				}
			}
		}

		// Conjugate gradients to the end.
		alpha, beta, gamma := 0.0, 0.0, 0.0
		for turn := range 200 {
			last := gamma
			gamma = 0
			delta := 0.0
			var parts, sums [][]float64
			for _, x := range messages {
				gamma, delta = gamma+x.Gamma, delta+x.Delta
				parts, sums = append(parts, x.Rows), append(sums, x.Columns)
			}
			c, v, off := j.rows.Couple(parts, sums)
			delta -= off
			if gamma < 1e-24 {
				break
			}
			if turn > 0 {
				beta = gamma / last
				delta -= beta * gamma / alpha
			}
			alpha = gamma / delta
			for b := range j.blocks {
				messages[b] = j.opened(b, z).JointTurn(j.rows, systems[b], alpha, beta, c, v)
			}
		}
		step := make([][]float64, len(j.blocks))
		for b, block := range j.blocks {
			lanes := len(block.Positive)
			for at := range j.w[b] {
				step[b] = append(step[b], systems[b].Step[at/lanes*padded(lanes)+at%lanes])
			}
		}
		for b, image := range j.product(z, soft, step) {
			for at, x := range image {
				if math.Abs(x+gradient[b][at]) > 1e-8*(1+math.Abs(x)) {
					t.Fatalf("seed %d, block %d, entry %d: the system times the step is %g, the gradient %g", seed, b, at, x,
						gradient[b][at])
				}
			}
		}

		// The line search.
		const length = 0.5
		slope, tried := 0.0, 0.0
		logs = nil
		for b := range j.blocks {
			message := j.opened(b, z).JointSearch(j.rows, j.w[b], systems[b], length, true)
			slope, tried = slope+message.Slope, tried+message.Objective
			logs = append(logs, message.Rows)
		}
		LogSums(logs, z)
		for i, x := range z {
			tried += j.rows.Weight[i] * x
		}
		want := 0.0
		for b := range j.blocks {
			for at, x := range step[b] {
				want += gradient[b][at] * x
			}
			j.opened(b, nil).JointMove(j.w[b], systems[b].Step, length, make([]float64, columns))
		}
		if math.Abs(slope-want) > 1e-10*math.Abs(want) {
			t.Errorf("slope %g, want %g", slope, want)
		}
		if want := j.objective(); math.Abs(tried-want) > 1e-10*want {
			t.Errorf("the search sees %g, f is %g", tried, want)
		}
	}
}

// share is the weight that Newton's system uses in place of p.
func (j *jointJob) share(z, soft []float64, b, l, row int) float64 {
	p := math.Exp(j.score(b, l, row) - z[row])
	if slices.Contains(j.blocks[b].Positive[l], uint32(row)) {
		return 1 - soft[row]*(1-p)
	}
	return soft[row] * p
}

// product returns Newton's system times u.
func (j *jointJob) product(z, soft []float64, u [][]float64) [][]float64 {
	of := &jointJob{j.rows, j.blocks, u}
	out := make([][]float64, len(u))
	for b, block := range j.blocks {
		lanes := len(block.Positive)
		for at, x := range u[b] {
			out[b] = append(out[b], block.Precision[at%lanes].At(at/lanes)*x)
		}
	}
	for i := range j.rows.X.Rows {
		mean, all := 0.0, 0.0
		for b, block := range j.blocks {
			for l := range block.Positive {
				mean += j.share(z, soft, b, l, i) * of.score(b, l, i)
				all += j.share(z, soft, b, l, i)
			}
		}
		if math.Abs(all-1) > 1e-12 {
			panic("the shares do not add up to one")
		}
		row := j.rows.dense(i)
		for b, block := range j.blocks {
			lanes := len(block.Positive)
			for l := range block.Positive {
				pull := j.rows.Weight[i] * j.share(z, soft, b, l, i) * (of.score(b, l, i) - mean)
				for f, x := range row {
					out[b][f*lanes+l] += pull * x
				}
			}
		}
	}
	return out
}

// TestSoften has two classes. It checks that a row on the wrong side is below a parabola that
// touches the loss on both sides, and that a row on the right side is unchanged.
func TestSoften(t *testing.T) {
	loss := func(m float64) float64 { return math.Log1p(math.Exp(-m)) }
	for _, margin := range []float64{-60, -20, -3, -0.5, -1e-3} { // margin of the class over the other
		z := math.Max(margin, 0) + math.Log1p(math.Exp(-math.Abs(margin)))
		p := 1 / (1 + math.Exp(-margin))
		own := 1 - Soften(z, margin)*(1-p)
		curve := own * (1 - own)
		for d := -10.0; d < 80; d += 0.25 {
			if model := loss(margin) - (1-p)*d + curve*d*d/2; model < loss(margin+d)*(1-1e-9)-1e-9 {
				t.Errorf("margin %g, step %g: the parabola is at %g, the loss %g", margin, d, model, loss(margin+d))
			}
		}
		if at := loss(margin) - (1-p)*-2*margin + curve*2*margin*margin; math.Abs(at-loss(-margin)) > 1e-9*(1+loss(-margin)) {
			t.Errorf("margin %g: the parabola is at %g on the other side, the loss %g", margin, at, loss(-margin))
		}
	}
	if s := Soften(0.1, 0.05); s != 1 {
		t.Errorf("the other classes of a row on the right side are softened by %g", s)
	}
	for _, far := range []float64{800, 1e5} {
		if own := 1 - Soften(far, 0); math.Abs(own*(1-own)*2*far-1) > 1e-6 {
			t.Errorf("margin -%g: curvature %g", far, own*(1-own))
		}
	}
}
