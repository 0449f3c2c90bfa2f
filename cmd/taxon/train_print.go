package main

import (
	"context"
	"fmt"

	"taxon/internal/eval"
	"taxon/internal/model"
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
	if o.test != "" {
		var err error
		if d.Test, err = evaluate(ctx, a, testOptions(o)); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(d)
	}
	printReport(a, o.out, r)
	if d.Test != nil {
		printEval(a, testOptions(o), o.out, d.Test)
	}
	return nil
}

func testOptions(o *trainOptions) evalOptions {
	return evalOptions{model: o.out, rows: rowOptions{
		path: o.test, asTrained: true, zeroBased: o.zeroBased, zeroSet: o.zeroBased, threads: o.threads, labels: true,
	}}
}

func printReport(a *app, out string, r *model.Report) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(a.stdout, "  %-12s%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(a.stdout, "%s\n", a.style.bold(out))
	row("method", "%s, %s, C = %g, bias %g", r.Method, r.Loss, r.C, r.Bias)
	row("data", "%s, %s, %s", counted(int64(r.Instances), "instance", "instances"), counted(int64(r.Features), "feature", "features"),
		counted(int64(r.Terminals), "class", "classes"))
	if r.Gap != nil {
		row("gap", "%.3g (objective %.9g, dual %.9g)", *r.Gap, r.Objective, *r.Dual)
	} else {
		row("objective", "%.9g (without an anchor there is no gap)", r.Objective)
	}
	if r.Colours > 0 {
		row("colours", "%d", r.Colours)
	}
	for _, c := range r.CapsBefore {
		row("before", "%s", capsThen(c))
	}
	row("stopped by", "%s, after %s", r.StoppedBy, counted(int64(r.Sweeps), "sweep", "sweeps"))
	row("time", "%s, %s of CPU, %s at most", formatSeconds(r.Seconds), formatSeconds(r.CPUSeconds), formatBytes(r.PeakRSSBytes))
	row("weights", "sha256 %s", r.WeightsSHA256)
}
