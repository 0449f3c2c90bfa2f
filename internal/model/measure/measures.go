package measure

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"taxon/internal/model/labelset"
)

// RankedPlaces is the number of places that the ranked measures of every result use (P@5, nDCG@5).
const RankedPlaces = 5

// Places returns the number of places of a ranking that are needed for measures at further numbers
// of places.
func Places(at []int) int { return slices.Max(append([]int{RankedPlaces}, at...)) }

// Further returns the Options.At that the measure needs.
func (m *Measure) Further() []int {
	if m.At == 0 {
		return nil
	}
	return []int{m.At}
}

// Places returns the number of places of a ranking that the measure needs, at least RankedPlaces.
func (m *Measure) Places() int { return Places(m.Further()) }

// MaxAt bounds k in p@k and the like.
const MaxAt = 1 << 20

// Measure describes one measure of a Result.
type Measure struct {
	// Key is its key in JSON.
	Key string
	// Name is its name for people. It is empty if the measure equals another one and is not shown.
	Name string
	// Note explains the name, if it needs an explanation.
	Note string
	// Low reports that lower values are better.
	Low bool
	// Percent reports that the value is a share of at most 1, which is shown in percent.
	Percent bool
	// Ranked reports that rankings are needed.
	Ranked bool
	// Hierarchical reports that a class structure is needed.
	Hierarchical bool
	// Probable reports that probabilities are needed.
	Probable bool
	// Propensity reports that the numbers of training documents are needed.
	Propensity bool
	// At is k for p@k, ndcg@k, psp@k and psndcg@k that not every result has. Options.At must contain it.
	At int
	// NoGoal says that the measure cannot be the goal of tune. Only eval shows it.
	NoGoal bool
	// Cutoffs is the measure that cut-offs maximise if this measure is the goal. Measures of
	// rankings and probabilities have no cut-offs, so they have the default one.
	Cutoffs labelset.Goal
	// Card shows the measure in a report. A report leaves out a measure without one.
	Card *Card

	// of returns the value in a result.
	of func(r *Result) float64
}

// Card is a measure in the report of a model, for readers who do not know the field.
type Card struct {
	Title string
	// Text explains it. {classes} stands for the number of classes.
	Text     string
	Decimals int
	// Complement says that 1 minus the value is shown.
	Complement bool
}

// Of returns the value as the card shows it.
func (c *Card) Of(m *Measure, x float64) string {
	if c.Complement {
		x = 1 - x
	}
	return strconv.FormatFloat(m.Shown(x), 'f', c.Decimals, 64)
}

// card adds a card.
func (m Measure) card(title string, decimals int, text string) Measure {
	m.Card = &Card{Title: title, Decimals: decimals, Text: text}
	return m
}

// Measures lists all measures in the order of eval --json, followed by those of rankings for each
// further number of places.
func Measures(at ...int) []Measure {
	flat := func(key, name string, of func(r *Result) float64) Measure {
		return Measure{Key: key, Name: name, Percent: true, Cutoffs: labelset.MicroF1, of: of}
	}
	ranked := func(key, name string, of func(r *Ranking) float64) Measure {
		return Measure{Key: key, Name: name, Percent: true, Ranked: true, Cutoffs: labelset.MeanF1,
			of: func(r *Result) float64 { return of(r.Ranking) }}
	}
	propensity := func(key, name string, of func(r *PropensityScored) float64) Measure {
		return Measure{Key: key, Name: name, Percent: true, Ranked: true, Propensity: true, Cutoffs: labelset.MeanF1,
			of: func(r *Result) float64 { return of(r.PropensityScored) }}
	}
	loss := func(key, name, note string, of func(h *Hierarchy) float64) Measure {
		return Measure{Key: key, Name: name, Note: note, Low: true, Hierarchical: true, Cutoffs: labelset.MicroF1,
			of: func(r *Result) float64 { return of(r.Hierarchy) }}
	}
	share := func(key, name string, of func(h *Hierarchy) float64) Measure {
		return Measure{Key: key, Name: name, Percent: true, Hierarchical: true, Cutoffs: labelset.MicroF1,
			of: func(r *Result) float64 { return of(r.Hierarchy) }}
	}
	probable := func(key, name, note string, of func(p *Probability) float64) Measure {
		return Measure{Key: key, Name: name, Note: note, Low: true, Probable: true, Cutoffs: labelset.MeanF1,
			of: func(r *Result) float64 { return of(r.Probability) }}
	}
	macro := flat("macro_f1", "macro F1", func(r *Result) float64 { return r.MacroF1 }).card("Macro-F1", 1,
		"Mean of the F1 of each of {classes} classes; each weighs the same.")
	macro.Cutoffs = labelset.MacroF1
	zeroOne := flat("zero_one", "zero-one loss", func(r *Result) float64 { return r.ZeroOne }).card("Exactly right", 1,
		"Share of instances whose set of labels is right, all of it.")
	zeroOne.Low, zeroOne.Card.Complement = true, true
	brier := probable("brier", "Brier score", "squared distance of the probabilities from what is true",
		func(p *Probability) float64 { return p.Brier }).card("Brier score", 3,
		"Mean squared distance of the probabilities from what was true; lower is better.")
	ece := probable("ece", "calibration error", "how far probabilities are, on average, from how often they come true",
		func(p *Probability) float64 { return p.ECE }).card("Calibration error", 3, "How far probabilities are from the "+
		"shares that came true; 0: probabilities can be taken at their word.")
	brier.NoGoal, ece.NoGoal = true, true
	all := []Measure{
		flat("micro_f1", "micro F1", func(r *Result) float64 { return r.MicroF1 }).card("Micro-F1", 1, "Harmonic mean of "+
			"precision and recall over all decisions about a class for an instance; frequent classes weigh most."),
		macro,
		flat("micro_precision", "micro precision", func(r *Result) float64 { return r.MicroPrecision }),
		flat("micro_recall", "micro recall", func(r *Result) float64 { return r.MicroRecall }),
		zeroOne,
		ranked("p@1", "P@1", func(r *Ranking) float64 { return r.P1 }).card("P@1", 1,
			"Share of instances whose best class is one of their own."),
		ranked("p@3", "P@3", func(r *Ranking) float64 { return r.P3 }),
		ranked("p@5", "P@5", func(r *Ranking) float64 { return r.P5 }),
		ranked("ndcg@5", "nDCG@5", func(r *Ranking) float64 { return r.NDCG5 }).card("nDCG@5", 1,
			"How high the true classes stand among the best five; 100: first of all."),
		propensity("psp@1", "PSP@1", func(r *PropensityScored) float64 { return r.PSP1 }),
		propensity("psp@3", "PSP@3", func(r *PropensityScored) float64 { return r.PSP3 }),
		propensity("psp@5", "PSP@5", func(r *PropensityScored) float64 { return r.PSP5 }),
		propensity("psndcg@5", "PSnDCG@5", func(r *PropensityScored) float64 { return r.PSNDCG5 }),
		loss("tree_loss", "tree loss", "half the steps in the hierarchy from the class given to the true one",
			func(h *Hierarchy) float64 { return h.TreeLoss }).card("Tree loss", 2,
			"Half the steps in the hierarchy from the class given to the true one; 0: right."),
		loss("sym_diff", "symmetric difference", "classes given but not true, or true but not given, ancestors counted",
			func(h *Hierarchy) float64 { return h.SymDiff }),
		loss("l_H_unif", "H-loss, uniform", "mistaken classes whose ancestors are all right, each counted as 1",
			func(h *Hierarchy) float64 { return h.HUnif }),
		loss("l_H_sibl", "H-loss, siblings", "the same, each divided by the number of siblings at every level down to it",
			func(h *Hierarchy) float64 { return h.HSibl }),
		loss("l_H_subtree", "H-loss, subtree", "the same, each counted as the share of all classes in its subtree",
			func(h *Hierarchy) float64 { return h.HSubtree }),
		loss("l_Htilde_unif", "", "", func(h *Hierarchy) float64 { return h.HtildeUnif }),
		loss("l_Htilde_sibl", "", "", func(h *Hierarchy) float64 { return h.HtildeSibl }),
		loss("l_Htilde_subtree", "", "", func(h *Hierarchy) float64 { return h.HtildeSubtree }),
		share("hier_precision", "hierarchical precision", func(h *Hierarchy) float64 { return h.Precision }),
		share("hier_recall", "hierarchical recall", func(h *Hierarchy) float64 { return h.Recall }),
		share("hier_f1", "hierarchical F1", func(h *Hierarchy) float64 { return h.F1 }).card("Hierarchical F1", 1,
			"F1 over classes and all above them: a near miss counts in part."),
		probable("log_loss", "log-loss", "mean of -log p of the true label; where instances have several labels, over "+
			"instances and classes", func(p *Probability) float64 { return p.LogLoss }).card("Log-loss", 3,
			"Mean of -ln of the probability given to what was true; lower is better."),
		brier,
		ece,
	}
	for _, k := range at {
		for _, m := range placed(k) {
			if !slices.ContainsFunc(all, func(known Measure) bool { return known.Key == m.Key }) {
				all = append(all, m)
			}
		}
	}
	return all
}

// placed returns p@k, ndcg@k, psp@k and psndcg@k.
func placed(k int) []Measure {
	one := func(key, name string, of func(p *Place) float64) Measure {
		text := strconv.Itoa(k)
		return Measure{Key: key + text, Name: name + text, Percent: true, Ranked: true, At: k,
			Propensity: strings.HasPrefix(key, "ps"), Cutoffs: labelset.MeanF1, of: func(r *Result) float64 {
				return of(&r.Places[slices.IndexFunc(r.Places, func(p Place) bool { return p.K == k })])
			}}
	}
	return []Measure{one("p@", "P@", func(p *Place) float64 { return p.P }),
		one("ndcg@", "nDCG@", func(p *Place) float64 { return p.NDCG }),
		one("psp@", "PSP@", func(p *Place) float64 { return p.PSP }),
		one("psndcg@", "PSnDCG@", func(p *Place) float64 { return p.PSNDCG })}
}

// Find returns the measure with a key of eval --json, one of rankings such as p@k for any k, or
// mean_f1. micro and macro stand for the F1. keys lists the valid keys, for error messages.
func Find(key string) (m *Measure, keys []string) {
	var at []int
	if key == "micro" || key == "macro" {
		key += "_f1"
	}
	if _, k, ranked := strings.Cut(key, "@"); ranked {
		if n, err := strconv.Atoi(k); err == nil && n >= 1 && n <= MaxAt && strconv.Itoa(n) == k {
			at = []int{n}
		}
	}
	for _, m := range append([]Measure{MeanF1()}, Measures(at...)...) {
		if m.Key == key {
			return &m, nil
		}
		keys = append(keys, m.Key)
	}
	return nil, keys
}

// MeanF1 returns the mean of micro and macro F1. It serves as a goal and is not part of Results.
func MeanF1() Measure {
	return Measure{Key: "mean_f1", Name: "mean of micro and macro F1", Percent: true, Cutoffs: labelset.MeanF1,
		of: func(r *Result) float64 { return (r.MicroF1 + r.MacroF1) / 2 }}
}

// CutoffsFor returns the measure that cut-offs maximise if the measure with this key is the goal.
// It is labelset.MeanF1 if no measure has the key.
func CutoffsFor(key string) labelset.Goal {
	if m, _ := Find(key); m != nil {
		return m.Cutoffs
	}
	return labelset.MeanF1
}

// Of returns the measure's value in a result. ok is false if it was not measured.
func (m *Measure) Of(r *Result) (value float64, ok bool) {
	if m.Ranked && r.Ranking == nil || m.Propensity && r.PropensityScored == nil {
		return 0, false
	}
	if m.At > 0 && !slices.ContainsFunc(r.Places,
		func(p Place) bool { return p.K == m.At }) || m.Hierarchical && r.Hierarchy == nil || m.Probable &&
		r.Probability == nil {
		return 0, false
	}
	return m.of(r), true
}

// Shown returns a value, or a difference, as it is shown: in percent, or unchanged.
func (m *Measure) Shown(x float64) float64 {
	if m.Percent {
		return 100 * x
	}
	return x
}

// Text returns a value as text: in percent with two decimals, or with four decimals.
func (m *Measure) Text(x float64) string {
	if m.Percent {
		return Percent(x)
	}
	return strconv.FormatFloat(x, 'f', 4, 64)
}

// Title returns the name with its unit.
func (m *Measure) Title() string {
	if m.Percent {
		return m.Name + " %"
	}
	return m.Name
}

// Words returns the name with a value and its unit.
func (m *Measure) Words(x float64) string {
	if m.Percent {
		return m.Name + " " + m.Text(x) + " %"
	}
	return m.Name + " " + m.Text(x)
}

// Percent returns a share as text in percent.
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) }

// rankingSums accumulates the ranked measures.
type rankingSums struct {
	// at lists the numbers of places.
	at []int
	// hits and ndcg are the sums at each of them.
	hits []int64
	ndcg []float64
	// scored is nil without the numbers of training documents.
	scored *propensitySums
}

func newRankingSums(o *Options) *rankingSums {
	s := &rankingSums{at: []int{1, 3, RankedPlaces}}
	for _, k := range o.At {
		if !slices.Contains(s.at[3:], k) {
			s.at = append(s.at, k)
		}
	}
	s.hits, s.ndcg = make([]int64, len(s.at)), make([]float64, len(s.at))
	if o.propensities() {
		s.scored = newPropensitySums(o, len(s.at))
	}
	return s
}

// discount returns the weight of a hit at place i, counted from 0: 1/log2(i+2).
func discount(i int) float64 { return 1 / math.Log2(float64(i+2)) }

// add adds a ranking without repeats. truth is the set of the row's true labels, and ids lists it.
//
//	P@k    = (true labels among the first k) / k
//	nDCG@k = sum over hits at places 1..k of 1/log2(place+1), over the same sum with
//	         hits at places 1..min(k, count)
func (s *rankingSums) add(ranked []int32, truth *marks, ids []int32) {
	count := len(ids)
	if count == 0 {
		return
	}
	if s.scored != nil {
		s.scored.add(s.at, ranked, truth, ids)
	}
	for j, k := range s.at {
		gain, best := 0.0, 0.0
		for i := range min(k, count) {
			best += discount(i)
		}
		for i, id := range ranked[:min(k, len(ranked))] {
			if truth.has(id) {
				gain += discount(i)
				s.hits[j]++
			}
		}
		s.ndcg[j] += gain / best
	}
}

func (s *rankingSums) result(instances int) *Ranking {
	p := func(j int) float64 { return share(s.hits[j], int64(s.at[j])*int64(instances)) }
	r := &Ranking{P1: p(0), P3: p(1), P5: p(2), NDCG5: mean(s.ndcg[2], instances)}
	for j := 3; j < len(s.at); j++ {
		place := Place{K: s.at[j], P: p(j), NDCG: mean(s.ndcg[j], instances)}
		if s.scored != nil {
			place.PSP, place.PSNDCG = s.scored.precision[j].of(), s.scored.ndcg[j].of()
		}
		r.Places = append(r.Places, place)
	}
	return r
}
