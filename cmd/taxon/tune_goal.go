package main

import (
	"strings"

	"taxon/internal/eval"
)

// parseGoal finds the measure that a search chooses by; micro and macro stand for the F1.
func parseGoal(name string) (*eval.Measure, error) {
	key := name
	if name == "micro" || name == "macro" {
		key = name + "_f1"
	}
	keys := []string{"micro", "macro"}
	for _, m := range eval.Measures() {
		if m.Key == key {
			return &m, nil
		}
		keys = append(keys, m.Key)
	}
	if near := nearest(name, keys); near != "" {
		return nil, usagef("tune: --goal %s: did you mean %s?", quoteIfOdd(name), near)
	}
	return nil, usagef("tune: --goal %s: must be one of %s", quoteIfOdd(name), strings.Join(keys, ", "))
}

// measured is the goal's value in a result.
func measured(goal *eval.Measure, r *eval.Result) (float64, error) {
	v, ok := goal.Of(r)
	if !ok {
		return 0, usagef("tune: --goal %s is not measured on this data", goal.Key)
	}
	return v, nil
}
