package main

import (
	"encoding/json"
	"strings"

	"taxon/internal/eval"
)

// goal is the measure that a search chooses by.
type goal struct {
	key          string // as in eval --json
	low          bool   // the lower the better
	hierarchical bool   // needs a structure
	ranked       bool   // needs the best classes
}

// goals are the measures by key, in the order of eval --json.
var goals = []goal{
	{key: "micro_f1"}, {key: "macro_f1"}, {key: "micro_precision"}, {key: "micro_recall"}, {key: "zero_one", low: true},
	{key: "p@1", ranked: true}, {key: "p@3", ranked: true}, {key: "p@5", ranked: true}, {key: "ndcg@5", ranked: true},
	{key: "tree_loss", low: true, hierarchical: true}, {key: "sym_diff", low: true, hierarchical: true},
	{key: "l_H_unif", low: true, hierarchical: true}, {key: "l_H_sibl", low: true, hierarchical: true}, {key: "l_H_subtree", low: true, hierarchical: true},
	{key: "l_Htilde_unif", low: true, hierarchical: true}, {key: "l_Htilde_sibl", low: true, hierarchical: true}, {key: "l_Htilde_subtree", low: true, hierarchical: true},
	{key: "hier_precision", hierarchical: true}, {key: "hier_recall", hierarchical: true}, {key: "hier_f1", hierarchical: true},
}

// parseGoal finds a measure by its key; micro and macro stand for the F1.
func parseGoal(name string) (*goal, error) {
	key := name
	if name == "micro" || name == "macro" {
		key = name + "_f1"
	}
	var keys []string
	for i := range goals {
		if goals[i].key == key {
			return &goals[i], nil
		}
		keys = append(keys, goals[i].key)
	}
	if near := nearest(name, append([]string{"micro", "macro"}, keys...)); near != "" {
		return nil, usagef("tune: --goal %s: did you mean %s?", quoteIfOdd(name), near)
	}
	return nil, usagef("tune: --goal %s: must be one of micro, macro, %s", quoteIfOdd(name), strings.Join(keys, ", "))
}

// of is the measure's value in a result.
func (g *goal) of(r *eval.Result) (float64, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &all); err != nil {
		return 0, err
	}
	raw, ok := all[g.key]
	if !ok {
		return 0, usagef("tune: --goal %s is not measured on this data", g.key)
	}
	v := 0.0
	return v, json.Unmarshal(raw, &v)
}
