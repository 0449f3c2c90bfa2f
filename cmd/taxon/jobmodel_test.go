package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
)

// notOptions are the flags of a job that stay with whoever submits it.
var notOptions = map[string]string{
	"require-gap": "the exit status",
	"loss":        "tested below, as it depends on --method",
}

// Each flag that says what is trained reaches the job.
func TestJobFlagsReachTheJob(t *testing.T) {
	other := map[string][]string{"method": {"bsvm"}, "loss": {"squared-hinge"}, "positive-weight": {"balanced"}}
	def := func() (*trainOptions, *cobra.Command) {
		o, cmd := &trainOptions{}, &cobra.Command{Use: "test"}
		o.jobFlags(cmd)
		return o, cmd
	}
	plain, cmd := def()
	seen := 0
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if notOptions[f.Name] != "" {
			return
		}
		seen++
		values := append(other[f.Name], "0.125", "7", "none", "parity", "dsatur", "full", "true")
		o, cmd := def()
		for _, v := range values {
			if v != f.DefValue && cmd.Flags().Set(f.Name, v) == nil {
				break
			}
		}
		if proto.Equal(o.proto(), plain.proto()) {
			t.Errorf("--%s does not reach the job: carry it in trainOptions.proto", f.Name)
		}
	})
	if seen < 15 {
		t.Errorf("%d flags", seen)
	}
	o, cmd := def()
	if err := cmd.Flags().Set("method", "rr-lr"); err != nil {
		t.Fatal(err)
	}
	if err := o.settle(false); err != nil || o.proto().GetLoss() != "logistic" {
		t.Errorf("rr-lr has loss %s, %v", o.proto().GetLoss(), err)
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
