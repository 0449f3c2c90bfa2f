package machine_test

import (
	"strings"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
)

// owner is the word after owner= among a command's words.
func owner(words []string) string {
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "owner="); ok {
			return name
		}
	}
	return ""
}

// spec is the job of a submission's words.
func (s *scene) spec(args []string) *taxonv1.JobSpec {
	spec := machinetest.Spec("twoblock", 0)
	spec.Options.Set("checkpoint_sweeps", 1)
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "tree":
			spec.Structure = &taxonv1.Structure{Names: []string{"r", "a", "b"}, Parents: []uint32{0, 0},
				Children: []uint32{1, 2}}
			spec.Data = &taxonv1.Data{Instances: 4, Features: 3, Nonzeros: 6, Labels: []string{"a", "b"},
				LabelInstances: []uint32{2, 2}}
		case "schedule":
			if value == "flat" {
				spec.Structure = nil
			} else {
				spec.Options.Set("schedule", value)
			}
		case "owner":
		case "max_sweeps":
			spec.Options.Set("max_sweeps", uint32(s.number(value)))
		case "max_seconds":
			spec.Options.Set("max_seconds", s.number(value))
		case "gap":
			spec.Options.Set("gap", s.number(value))
		case "eval_every":
			spec.Options.Set("eval_every", uint32(s.number(value)))
		default:
			s.t.Fatalf("unknown option %q", key)
		}
	}
	return spec
}
