package main

import (
	"context"
	"encoding/json"
	"fmt"

	"taxon/coordinator/method/registry"
	"taxon/internal/eval"
	"taxon/internal/evaluate"
	"taxon/internal/fs"
	"taxon/internal/human"
	"taxon/internal/model"
	"taxon/internal/predict"
)

// trainedDocument is `taxon train --json`: the report, and with --test the figures.
type trainedDocument struct {
	*model.Report
	Test *eval.Result // nil: there was no --test
}

// MarshalJSON writes both as one object.
func (d trainedDocument) MarshalJSON() ([]byte, error) {
	return model.JoinObjects(d.Report, struct {
		Test *eval.Result `json:"test,omitempty"`
	}{d.Test})
}

// printTrained evaluates on --test and prints what was reached.
func printTrained(ctx context.Context, a *app, o *trainOptions, r *model.Report) error {
	d := trainedDocument{Report: r}
	if o.Test != "" {
		var err error
		if d.Test, err = evaluate.Run(ctx, testOptions(a, o), a.ui); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(d)
	}
	printReport(a, o.Out, r)
	if d.Test != nil {
		printEval(a, testOptions(a, o), o.Out, d.Test)
	}
	return nil
}

func testOptions(a *app, o *trainOptions) evaluate.Options {
	return evaluate.Options{Everything: a.json, Model: o.Out, Data: predict.Input{
		Path: o.Test, AsTrained: true, ZeroBased: o.ZeroBased, ZeroGiven: o.ZeroBased, Threads: o.Threads, Files: fs.Local{In: a.stdin},
	}}
}

func printReport(a *app, out string, r *model.Report) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(a.stdout, "  %-12s%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(a.stdout, "%s\n", a.style.Bold(out))
	row("method", "%s", registry.Words(r.Method, r.Own))
	row("data", "%s, %s, %s", human.Counted(int64(r.Instances), "instance", "instances"), human.Counted(int64(r.Features), "feature", "features"),
		human.Counted(int64(r.Terminals), "class", "classes"))
	reached, stationary := r.Own["tolerance_reached"]
	switch {
	case r.Gap != nil:
		row("gap", "%.3g (objective %.9g, dual %.9g)", *r.Gap, r.Objective, *r.Dual)
	case stationary:
		row("objective", "%.9g (%s)", r.Objective, told(reached))
	default:
		row("objective", "%.9g (without an anchor there is no gap)", r.Objective)
	}
	if n, ok := r.Own["colours"]; ok {
		row("colours", "%s", n)
	}
	for _, c := range r.CapsBefore {
		row("before", "%s", capsThen(c))
	}
	row("stopped by", "%s, after %s", r.StoppedBy, human.Counted(int64(r.Sweeps), "sweep", "sweeps"))
	row("time", "%s, %s of CPU, %s at most", human.Seconds(r.Seconds), human.Seconds(r.CPUSeconds), human.Bytes(r.PeakRSSBytes))
	row("weights", "sha256 %s", r.WeightsSHA256)
}

// told says how far a training without a bound is from where it goes, from its report.
func told(number json.RawMessage) string {
	var x *float64
	if json.Unmarshal(number, &x) != nil || x == nil {
		return "how far from a fixed point, too few sweeps have shown"
	}
	return fmt.Sprintf("within %.2g of a fixed point", *x)
}
