package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
)

// Each option that any method has can be given by a flag or by --x, and reaches the job of a method that
// has it.
func TestOptionsReachJobs(t *testing.T) {
	for _, p := range registry.Options() {
		if p.Help == "" {
			continue
		}
		o, cmd := &trainOptions{}, &cobra.Command{Use: "test"}
		o.defineFlags(cmd)
		o.Job.Method = append(registry.Taking(p.Name), "rr-svm")[0]
		given := false
		for _, v := range append(slices.Clone(p.Choices), "0.125", "7", "true") {
			if v != p.Default && registry.Has(o.Job.Method, p.Name) && set(cmd, p.Name, v) == nil {
				given = true
				break
			}
		}
		o.Data, o.Hierarchy, o.Test = []string{"x"}, "h", "y"
		if p.Learns {
			o.Hierarchy = ""
		}
		if p.With != "" {
			name, value, _ := strings.Cut(p.With, "=")
			o.Said[name] = value
		}
		one := p.Kind == method.Choice && len(p.Choices) == 1 // there is no other value yet
		if err := o.Validate("train"); err != nil || given == one {
			t.Errorf("%s: given %t, %v", p.Name, given, err)
		}
		if got := p.Of(o.Job); !p.Carried && !one && got != o.Said[p.Name] {
			t.Errorf("%s %s does not reach the job, which has %q", p.Name, o.Said[p.Name], got)
		}
	}
}

// What a cluster can't do is refused with what to do instead.
func TestSubmitRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--data x --test y --wait --out z --eval-every 2":                "taxon train --eval-every",
		"--data x --method rr-lr --loss hinge --coordinator localhost:1": "logistic",
		"--data x --test y --eval-every 2":                               "needs --wait and --out",
	} {
		t.Run(args, func(t *testing.T) {
			cmd := newSubmitCmd(&app{})
			cmd.SetArgs(strings.Fields(args))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		})
	}
}
