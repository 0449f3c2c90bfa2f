package tune

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/train"
	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
)

// modelDir is the folder of the model within the search's folder.
const modelDir = "model"

// train trains the model of the chosen point in the remaining time. An existing model in the folder
// is replaced if it is of another point, or if the time limit cut its training short.
func (s *search) train(ctx context.Context, r *Table) error {
	o := s.o.trained(r.Options)
	o.Said = registry.Values{}
	for _, p := range registry.Of(r.Options.Method) {
		if v, ok := s.o.Train.Said[p.Name]; ok {
			o.Said[p.Name] = v
		}
		if v, ok := r.Options.Values[p.Name]; ok && v != p.Default {
			o.Said[p.Name] = v
		}
	}
	o.Job = &taxonv1.Options{Method: r.Options.Method}
	o.Out, o.Cutoff, o.Store, o.Pause = s.record.join(modelDir), "auto", "memory", 10
	made := made{Point: r.Options, MaxTime: o.Said["max-time"]}
	if least, after := s.lastTime(ctx, r); s.clock.limit > 0 {
		left := s.clock.left(s.reading + after)
		if s.whole.Meta().Data.MultiLabel() {
			// The other half is for the trainings on which cut-offs are fitted.
			left /= 2
			if most := max(left*float64(s.threads()), 1); most < cmp.Or(o.CutoffTime, train.FreeSeconds) {
				o.CutoffTime = most
			}
		}
		left = max(left, least) // a model cut short earlier is worth nothing
		said, err := strconv.ParseFloat(o.Said["max-time"], 64)
		if made.Capped = err != nil || said == 0 || said > left; made.Capped {
			made.MaxTime = strconv.FormatFloat(math.Ceil(max(left*s.clock.secondsRatio, 1)), 'g', -1, 64)
		}
	}
	old, path := madeOf(s.record), s.record.join(madeFile)
	switch {
	case old == nil || !old.Point.Equal(made.Point) || old.Report != nil && old.Capped &&
		old.Report.StoppedBy == method.StoppedByMaxTime:
		o.Force = true
	case old.Report != nil: // it is finished, and the same cap finds it
		made.MaxTime, made.Capped = old.MaxTime, old.Capped
	}
	if made.MaxTime != "" {
		o.Said["max-time"] = made.MaxTime
	}
	if err := s.record.writeJSON(path, &made); err != nil {
		return err
	}
	var report *model.Report
	var err error
	switch m := s.remote; {
	case m == nil:
		report, err = train.Run(ctx, &o, s.ui)
	case old != nil && old.Report != nil && !o.Force && model.IsModel(o.Out):
		report = old.Report
	default:
		report, err = s.last(ctx, m, &o)
	}
	if err != nil {
		return err
	}
	r.Model, r.Report, made.Report = o.Out, report, report
	if made.Capped && report.StoppedBy == method.StoppedByMaxTime {
		s.ui.Warn("%s: ‹time› ended its training before the requested tolerance: the same command continues it, and %s "+
			"has the options for a longer training", o.Out, s.record.join(jobFile))
	}
	return errors.Join(s.record.writeJSON(path, &made), s.record.writeJSON(s.record.join(tableFile), r))
}

// writing is the number of seconds reserved for the unforeseen. writeRate is the number of bytes of
// a model that are assembled and written per second.
const writing, writeRate = 2, 64 << 20

// lastTime estimates two durations of the last training, in seconds: the least time that it needs,
// and the time after its limit for the current sweep, one more for the certificate, and the writing
// of the model. Both are taken from a trial and scaled by the number of rows. A training of one
// sweep ends within it.
func (s *search) lastTime(ctx context.Context, r *Table) (least, after float64) {
	number := 0
	if r.Sample {
		number = s.folds.sample
	}
	results, err := s.record.results([]Point{r.Options}, number)
	if err != nil || results == nil {
		return 0, writing
	}
	trained, _ := s.folds.split(number)
	grown := float64(len(s.folds.fold)) / float64(max(len(trained), 1))
	least = grown * results[0].CPUSeconds / float64(s.threads())
	after = writing + grown*float64(results[0].Bytes)/writeRate
	if sweeps := float64(results[0].Sweeps); sweeps > 1 {
		after += 2 * least / sweeps
	}
	return least, after
}

// made describes the model in the folder.
type made struct {
	Point Point `json:"point"`
	// Report is nil while its training has not ended.
	Report *model.Report `json:"report"`
	// Capped reports that the time of the search limits the training.
	Capped bool `json:"capped"`
	// MaxTime is the value of the option max-time. It is empty if there is no limit.
	MaxTime string `json:"max_time"`
}

// madeOf reads the description of the model in the folder, finished or not. It is nil if there is
// none.
func madeOf(r record) *made {
	var m made
	if there, err := r.readJSON(r.join(madeFile), &m); !there || err != nil {
		return nil
	}
	return &m
}
