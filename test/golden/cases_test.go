package golden

// training is a line of the table. In its flags, @FILE is one of the data files (data_test.go), and
// %NAME the model of another training.
type training struct{ name, flags string }

const (
	onTree  = "--data @tree.svm --hierarchy @tree.txt "
	onFew   = "--data @few.svm --hierarchy @tree.txt "
	onSpawn = "--data @inner.svm --hierarchy @tree.txt "
	onDAG   = "--data @dag.svm --hierarchy @dag.txt "
	onGraph = "--data @half.svm --graph @tree.txt "
	onFlat  = "--data @flat.svm --method bsvm "
	onText  = "--text --data @text.txt --hierarchy @demo/hierarchy.txt "
	onWeb   = "--data @web.svm --graph @web.txt "
	onDense = "--data @dense.svm --hierarchy @dense.txt "
)

// trainings lists the table's lines in their order.
var trainings = []training{
	// trees: losses, C, bias, stopping
	{"tree", onTree},
	{"tree two threads", onTree + "--threads 2"},
	{"tree three stores", onTree + "--threads 2 --x stores=3"},
	{"tree badger", onTree + "--x store=badger --x stores=2"},
	{"tree ingested", "--data @ingested --hierarchy @tree.txt"},
	{"tree seed 7", onTree + "--seed 7"},
	{"tree gap 1e-3", onTree + "--gap 1e-3"},
	{"tree gap 1e-5", onTree + "--gap 1e-5"},
	{"tree max-sweeps 5", onTree + "--gap 1e-4 --max-sweeps 5"},
	{"tree C 0.1", onTree + "--C 0.1"},
	{"tree C 10", onTree + "--C 10"},
	{"tree C 100", onTree + "--C 100 --gap 2e-2 --max-sweeps 40"},
	{"tree bias 0", onTree + "--bias 0"},
	{"tree bias 10", onTree + "--bias 10"},
	{"tree squared", onTree + "--loss squared-hinge"},
	{"tree squared gap 1e-4", onTree + "--loss squared-hinge --gap 1e-4"},
	{"tree squared C 0.15", onTree + "--loss squared-hinge --C 0.15 --positive-weight 8"},
	{"tree squared C 10", onTree + "--loss squared-hinge --C 10"},
	{"tree squared bias 10", onTree + "--loss squared-hinge --bias 10 --threads 2"},
	{"tree logistic", onTree + "--method rr-lr"},
	{"tree logistic C 10", onTree + "--method rr-lr --C 10 --threads 2"},
	{"tree logistic bias 0", onTree + "--method rr-lr --bias 0 --C 0.1"},
	{"tree evaluated", onTree + "--test @few.svm --eval-every 2"},
	{"tree epochs 1", onTree + "--x epochs=1"},

	// weights of classes and edges
	{"tree positive 5", onTree + "--positive-weight 5"},
	{"tree positive balanced", onTree + "--positive-weight balanced"},
	{"tree logistic balanced", onTree + "--method rr-lr --positive-weight balanced"},
	{"tree internal 3", onTree + "--x internal-weight=3"},
	{"spawned internal 0.3 squared", onSpawn + "--x internal-weight=0.3 --loss squared-hinge"},

	// Schedules, stiffness, momentum.
	{"tree parity", onTree + "--x schedule=parity --gap 5e-2"},
	{"tree colour", onTree + "--x schedule=colour --gap 5e-2 --threads 2"},
	{"tree jacobi", onTree + "--x schedule=jacobi --gap 5e-2 --max-sweeps 60"},
	{"tree squared parity", onTree + "--x schedule=parity --loss squared-hinge --gap 5e-2"},
	{"tree logistic jacobi", onTree + "--x schedule=jacobi --method rr-lr --gap 5e-2 --max-sweeps 40"},
	{"tree full", onTree + "--x stiffness=full --max-sweeps 40"},
	{"tree plain", onTree + "--x momentum=none --max-sweeps 40"},
	{"tree full plain", onTree + "--x stiffness=full --x momentum=none --max-sweeps 24"},

	// other structures
	{"forest", "--data @tree.svm --hierarchy @forest.txt"},
	{"forest logistic", "--data @tree.svm --hierarchy @forest.txt --method rr-lr"},
	{"spawned", onSpawn},
	{"spawned gap 1e-4", onSpawn + "--gap 1e-4"},
	{"pruned", "--data @few.svm --hierarchy @tree.txt"},
	{"unpruned", "--data @few.svm --hierarchy @tree.txt --x prune=none"},
	{"unpruned squared", "--data @few.svm --hierarchy @tree.txt --x prune=none --loss squared-hinge"},
	{"zero rows", "--data @zero.svm --hierarchy @tree.txt"},
	{"zero rows squared bias 0", "--data @zero.svm --hierarchy @tree.txt --loss squared-hinge --bias 0"},
	{"zero rows logistic bias 0", "--data @zero.svm --hierarchy @tree.txt --method rr-lr --bias 0"},
	{"dag first-parent", onDAG + "--x dag=first-parent"},
	{"dag graph", onDAG},
	{"dag graph squared", onDAG + "--loss squared-hinge --threads 2"},
	{"dag graph colour", onDAG + "--x schedule=colour --gap 1e-1"},
	{"dag graph colour dsatur", onDAG + "--x schedule=colour --x colouring=dsatur --gap 1e-1"},
	{"graph", onGraph},
	{"graph gap 1e-3", onGraph + "--gap 1e-3"},
	{"graph anchor 1", onGraph + "--x anchor=1 --loss squared-hinge --threads 2 --x stores=2"},
	{"graph anchor 0", "--data @few.svm --graph @tree.txt --x anchor=0 --gap 1e-1"},
	{"graph logistic", onGraph + "--method rr-lr --x anchor=0.1"},
	{"graph internal 2", onGraph + "--x internal-weight=2 --positive-weight balanced"},
	{"graph jacobi", onGraph + "--x schedule=jacobi --gap 1e-1 --max-sweeps 30"},
	{"graph logistic drift", "--data @few.svm --graph @forest.txt --method rr-lr --x anchor=0 --gap 3e-1"},
	{"web", onWeb + "--gap 5e-2"}, // so well connected that conjugate gradients solve it
	{"web squared", onWeb + "--gap 5e-2 --loss squared-hinge --threads 2"},

	// small and hard: guarded steps, stalls, stationary ends, every row in the working sets
	{"circles", "--data @circles.svm --hierarchy @circles.txt --gap 1e-9"},
	{"circles squared", "--data @circles.svm --hierarchy @circles.txt --loss squared-hinge --gap 1e-9"},
	{"own", "--data @own.svm --hierarchy @own.txt --threads 2"},
	{"own squared", "--data @own.svm --hierarchy @own.txt --loss squared-hinge --x stores=2"},
	{"circles C 10", "--data @circles.svm --hierarchy @circles.txt --C 10 --gap 1e-5"},
	{"chain C 1000", "--data @chain.svm --hierarchy @chain.txt --C 1000 --gap 1e-5"},
	{"brush", "--data @brush.svm --hierarchy @brush.txt --gap 1e-6 --max-sweeps 400"},

	// without a structure
	{"flat", onFlat},
	{"flat gap 1e-5", onFlat + "--gap 1e-5 --threads 2"},
	{"flat squared", onFlat + "--loss squared-hinge --C 100"},
	{"flat logistic", "--data @flat.svm --method blr"},
	{"flat rr-svm", "--data @flat.svm"},
	{"flat balanced", onFlat + "--positive-weight balanced --C 0.1 --bias 10"},
	{"flat of a tree", onTree + "--method bsvm"},

	// Many labels, with cut-offs fitted on instances held out.
	{"labels cut-offs", onDAG + "--x dag=first-parent --cutoff fit"},
	{"labels flat cut-offs", "--data @dag.svm --method bsvm --cutoff auto --threads 2"},

	// few columns without zeros, many rows, text
	{"dense", onDense},
	{"dense gap 1e-5", onDense + "--gap 1e-5 --C 10 --max-sweeps 60"},
	{"dense squared", onDense + "--loss squared-hinge --gap 1e-3"},
	{"dense flat", "--data @dense.svm --method bsvm --C 10"},
	{"dense logistic", onDense + "--method rr-lr"},
	{"rows", "--data @rows.svm --hierarchy @rows.txt --threads 2"},
	{"rows squared", "--data @rows.svm --hierarchy @rows.txt --loss squared-hinge --threads 2"},
	{"rows multi-class", "--data @rows.svm --method msvm"},
	{"rows multi-class C 0.01 gap 1e-4", "--data @rows.svm --method msvm --C 0.01 --gap 1e-4 --bias 0 --threads 2"},
	{"rows flatmult", "--data @rows.svm --method flatmult --C 1000"},
	{"rows hiermult", "--data @rows.svm --hierarchy @rows.txt --method hiermult --C 1000 --threads 2"},
	{"rows hsvm", "--data @fewrows.svm --hierarchy @rows.txt --method hsvm --C 1000"},
	{"rows hsvm margin", "--data @rows.svm --hierarchy @rows.txt --method hsvm --x rescale=margin --C 1000 " +
		"--bias 0 --threads 2"},
	{"rows transfer", "--data @rows.svm --hierarchy @rows.txt --method transfer --C 1000"},
	{"rows ot", "--data @rows.svm --hierarchy @rows.txt --method ot --C 1000 --gap 1e-2"},
	{"rows rr-msvm", "--data @fewrows.svm --hierarchy @rows.txt --method rr-msvm"},
	{"rows rr-mlr", "--data @rows.svm --hierarchy @rows.txt --method rr-mlr --threads 2"},
	{"rows correlated", "--data @fewrows.svm --hierarchy @rows.txt --method corrmnl --x iterations=12 --x burn-in=4 " +
		"--x leapfrog=2 --threads 2"},
	{"text", onText},
	{"text squared", onText + "--loss squared-hinge"},
	{"text demo", "--text --data @demo/train.txt --hierarchy @demo/hierarchy.txt --threads 2 --gap 5e-2"},

	// hierarchical Bayesian logistic regression
	{"hblr m1", onTree + "--method hblr-m1 --max-sweeps 6"},
	{"hblr m2 two threads", onTree + "--method hblr-m2 --threads 2 --x stores=2 --max-sweeps 6"},
	{"hblr m3", onTree + "--method hblr-m3 --max-sweeps 8"},
	{"hblr m3 parity", onTree + "--method hblr-m3 --x schedule=parity --max-sweeps 4"},
	{"hblr m2 spawned", onSpawn + "--method hblr-m2 --bias 0 --max-sweeps 5"},
	{"hblr m1 dense full", onDense + "--method hblr-m1 --x prior-inverse=full --max-sweeps 4"},
	{"hblr m1 flat median", "--data @flat.svm --method hblr-m1 --x prior-scale=median"},
	{"hblr m3 variational", onFew + "--method hblr-m3 --x inference=variational --x covariance=diagonal --max-sweeps 3"},
	{"hblr m2 variational full", onDense + "--method hblr-m2 --x inference=variational --max-sweeps 2"},
	{"hblr m1 softmax", "--data @rows.svm --hierarchy @rows.txt --method hblr-m1 --x likelihood=softmax --max-sweeps 3"},
	{"hblr m2 softmax flat", "--data @rows.svm --method hblr-m2 --x likelihood=softmax --max-sweeps 2"},
	{"hblr m3 softmax variational", "--data @fewrows.svm --hierarchy @rows.txt --method hblr-m3 --x likelihood=softmax " +
		"--x inference=variational --x covariance=diagonal --max-sweeps 1"},
	{"hblr m2 fitted priors", onTree + "--method hblr-m2 --x prior=blr --max-sweeps 2"},
	{"hblr m3 fitted priors", onDense + "--method hblr-m3 --x prior=blr --x prior-inverse=full --max-sweeps 3"},
	{"hblr m3 dag first-parent", onDAG + "--x dag=first-parent --method hblr-m3 --max-sweeps 3"},

	// a problem for each node, and sets of partial paths
	{"nested", onSpawn + "--method h-svm"},
	{"nested labels squared", onDAG + "--x dag=first-parent --method h-svm --loss squared-hinge --gap 1e-4 --threads 2"},
	{"nested ridge", onSpawn + "--method h-rls --C 3"},
	{"paths", onSpawn + "--method hm3 --max-sweeps 2"},
	{"paths labels subtree", onDAG + "--x dag=first-parent --method hm3 --x label-loss=subtree --max-sweeps 1 " +
		"--threads 2"},
	{"nested ridge dense", onDense + "--method h-rls --bias 0 --x stores=2"},

	// from another model: by C, by new rows, from another structure
	{"warm C", onTree + "--C 3 --warm-start %tree"},
	{"warm C squared", onTree + "--C 3 --loss squared-hinge --warm-start %tree_squared"},
	{"warm C logistic", onTree + "--C 3 --method rr-lr --warm-start %tree_logistic"},
	{"warm rows", onTree + "--warm-start %pruned"},
	{"warm structure", onSpawn + "--warm-start %forest"},
	{"warm flat", onTree + "--warm-start %flat_of_a_tree"},
	{"warm graph", onGraph + "--warm-start %spawned"},
	{"warm hblr", onTree + "--method hblr-m3 --warm-start %hblr_m1 --max-sweeps 3"},
	{"warm from hblr", onTree + "--method rr-lr --warm-start %hblr_m3"},
	{"warm text", onText + "--C 2 --warm-start %text"},
}

// outputs lists the results of other commands, whose hashes are in the table.
var outputs = []training{
	{"predict labels", "predict --model %labels_cut-offs --data @dag.svm --scores"},
	{"predict flat labels", "predict --model %labels_flat_cut-offs --data @dag.svm"},
	{"predict text", "predict --model %text --text --data @text.txt --top 3 --scores"},
	{"eval", "eval --model %labels_cut-offs --data @dag.svm --json --by-level --by-size"},
	{"export variances", "export --model %hblr_m3 --what variance --out -"},
	{"export precisions", "export --model %hblr_m2_two_threads --what precision --out -"},
	{"predict predictive", "predict --model %hblr_m1 --data @tree.svm --predictive --scores --top 3"},
	{"predict predictive variational", "predict --model %hblr_m3_variational --data @tree.svm " +
		"--predictive --scores --top 3"},
	{"predict predictive softmax", "predict --model %hblr_m1_softmax --data @fewrows.svm --predictive --scores --top 3"},
	{"predict probabilities", "predict --model %hblr_m1 --data @tree.svm --scores --top 3"},
	{"predict sets", "predict --model %nested_labels_squared --data @dag.svm --scores"},
	{"predict paths", "predict --model %paths --data @inner.svm --scores"},
	{"eval sets", "eval --model %nested --data @inner.svm --json --by-level"},
	{"export text", "export --model %spawned --format text --out -"},
	{"export pruned", "export --model %graph --format text --threshold 0.01 --out -"},
}
