package main

import "slices"

// measure is the figure that a case compares.
type measure int

const (
	// flatTime is the peer's training CPU divided by ours, at the peer's gap or below.
	flatTime measure = iota

	// jointTime is our joint training to a fixed gap divided by the peer's flat training.
	jointTime

	// jointF1 is our training to within 0.3 points of its own converged F1 divided by the peer's
	// training.
	jointF1
	twoCores // wall time on one thread over that on two
	docs     // our documents per second, with the peer's beside it
	memory   // peak bytes of a training
)

// claim is one line of the table: the trainings on both sides, and the figure that it should reach.
type claim struct {
	name  string
	what  measure
	set   string
	peer  string   // name in peers.py; it may be empty
	loss  string   // loss of both sides
	args  []string // further flags of taxon train
	gap   float64  // our gap, if it is not the peer's
	goal  float64
	reach float64 // the stretch goal, if there is one
}

// less reports whether a smaller figure is better.
func (c claim) less() bool { return c.what == jointTime || c.what == jointF1 || c.what == memory }

// unit returns the unit of the figure.
func (c claim) unit() string {
	switch c.what {
	case docs:
		return "documents/s"
	case memory:
		return "MB"
	}
	return "x"
}

func (c claim) meaning() string {
	switch c.what {
	case flatTime:
		return c.peer + "'s CPU time / ours, flat " + c.loss + ", at its gap or below"
	case jointTime:
		if c.peer == "omikuji" {
			return "our CPU time for the joint problem / omikuji's, " + c.loss
		}
		return "our CPU time for the joint problem / " + c.peer + "'s for the flat one, " + c.loss
	case jointF1:
		return "our CPU time to within 0.3 points of converged F1 / " + c.peer + "'s"
	case twoCores:
		return "time on 1 thread / on 2"
	case docs:
		return "predicted, exact top 5, one thread"
	}
	return "peak memory of a training"
}

// trees names the file of each set's structure. If a set has two structures, it names the tree.
var trees = map[string]string{"clef": "hierarchy.txt", "news20": "hierarchy.txt", "wordnet-freq": "tree.txt",
	"wordnet":  "tree.txt",
	"proteins": "hierarchy.txt", "embeddings": "hierarchy.txt"}

// made lists the sets that test/bench/dense generates, with its flags.
var made = map[string][]string{
	"proteins": {"--columns", "300"},
	"embeddings": {"--columns", "384", "--rows", "50000", "--tests", "5000", "--folds", "25", "--families", "0",
		"--classes", "500", "--near", "1"},
}

// claims lists all cases in the table's order.
func claims() []claim {
	weighted := []string{"--method", "rr-svm", "--C", "0.15", "--positive-weight", "8"}
	joint := []string{"--method", "rr-svm"}
	var out []claim
	hinge := map[string]claim{"wordnet-freq": {goal: 10, reach: 20}, "news20": {goal: 8}, "clef": {goal: 16}}
	for _, set := range []string{"wordnet-freq", "news20", "clef"} {
		out = append(out,
			claim{name: "flat-hinge-" + set, set: set, peer: "liblinear", loss: "hinge", goal: hinge[set].goal,
				reach: hinge[set].reach},
			claim{name: "flat-squared-" + set, set: set, peer: "liblinear", loss: "squared-hinge", goal: 8, reach: 16})
	}
	return append(out,
		claim{name: "flat-hinge-proteins", set: "proteins", peer: "liblinear", loss: "hinge", goal: 12},
		claim{name: "flat-hinge-embeddings", set: "embeddings", peer: "liblinear", loss: "hinge", goal: 15, reach: 30},
		claim{name: "rr-1e-2-embeddings", what: jointTime, set: "embeddings", peer: "liblinear", loss: "hinge", args: joint,
			gap: 1e-2, goal: 0.2, reach: 0.1},
		claim{name: "multiclass-news20", set: "news20", peer: "liblinear", loss: "crammer-singer", goal: 4, reach: 8},
		claim{name: "multiclass-clef", set: "clef", peer: "liblinear", loss: "crammer-singer", goal: 4, reach: 8},
		claim{name: "logistic-dual-wordnet-freq", set: "wordnet-freq", peer: "liblinear", loss: "logistic", goal: 4,
			reach: 8},
		claim{name: "logistic-primal-wordnet-freq", set: "wordnet-freq", peer: "liblinear_primal", loss: "logistic", goal: 4,
			reach: 8},
		claim{name: "rr-1e-2-wordnet-freq", what: jointTime, set: "wordnet-freq", peer: "liblinear", loss: "hinge",
			args: joint, gap: 1e-2, goal: 0.08, reach: 0.05},
		claim{name: "rr-1e-4-wordnet-freq", what: jointTime, set: "wordnet-freq", peer: "liblinear", loss: "hinge",
			args: joint, gap: 1e-4, goal: 0.3, reach: 0.15},
		claim{name: "rr-1e-2-news20", what: jointTime, set: "news20", peer: "liblinear", loss: "hinge", args: joint,
			gap: 1e-2},
		claim{name: "rr-1e-2-clef", what: jointTime, set: "clef", peer: "liblinear", loss: "hinge", args: joint, gap: 1e-2},
		claim{name: "rr-f1-wordnet-freq", what: jointF1, set: "wordnet-freq", peer: "omikuji", loss: "squared-hinge",
			args: weighted, goal: 2, reach: 1},
		claim{name: "rr-f1-hinge-wordnet-freq", what: jointF1, set: "wordnet-freq", peer: "omikuji", loss: "hinge",
			args: joint, goal: 1.5, reach: 1},
		claim{name: "rr-lr-1e-2-wordnet-freq", what: jointTime, set: "wordnet-freq", peer: "omikuji", loss: "logistic",
			args: []string{"--method", "rr-lr", "--positive-weight", "4"}, gap: 1e-2},
		claim{name: "rr-f1-news20", what: jointF1, set: "news20", peer: "omikuji", loss: "squared-hinge", args: weighted},
		claim{name: "threads-wordnet-freq", what: twoCores, set: "wordnet-freq", loss: "hinge", args: joint, gap: 1e-2,
			goal: 1.85, reach: 1.95},
		claim{name: "threads-news20", what: twoCores, set: "news20", loss: "hinge", args: joint, gap: 1e-2},
		claim{name: "predict-wordnet-freq", what: docs, set: "wordnet-freq", peer: "pecos", loss: "squared-hinge",
			args: []string{"--method", "bsvm"}, gap: 1e-2, goal: 18_000, reach: 35_000},
		claim{name: "predict-news20", what: docs, set: "news20", peer: "pecos", loss: "squared-hinge",
			args: []string{"--method", "bsvm"}, gap: 1e-2},
		claim{name: "memory-wordnet-freq", what: memory, set: "wordnet-freq", loss: "hinge", args: joint, gap: 1e-2,
			goal: 1500, reach: 600},
		claim{name: "memory-news20", what: memory, set: "news20", loss: "hinge", args: joint, gap: 1e-2},
		claim{name: "wordnet-2-cores", what: memory, set: "wordnet", loss: "hinge", args: append(slices.Clone(joint),
			"--threads", "2"), gap: 1e-2, goal: 3000, reach: 1500},
	)
}
