// Package golden checks the results of trainings to the byte. testdata/golden.txt has a line for
// each training of cases_test.go, with the hash of its weights, its sweeps, its certificate and the
// reason for its end. A refactoring changes no line of it. A change of the algorithm does, and then
// the table is rewritten on purpose:
//
//	go test ./test/golden -rewrite
//
// The trainings run on the command line, as those of users do, because its flags and the keys of
// its JSON are more stable than the code behind them. The data come from `taxon generate`, from the
// text of `taxon demo` and from data_test.go, each with a fixed seed. The table has their hashes
// too, so that a change of the data is not taken for a change of the weights.
//
// testdata/kept* are folders that this program or a release has written: models, and a checkpoint
// of an interrupted training. Later versions open them, or refuse them with one line that says what
// to do. Each release adds one:
//
//	go test ./test/golden -run TestKeep -keep kept-RELEASE && go test ./test/golden -rewrite
//
// Journals, shards and snapshots of a cluster are kept beside the packages that read them.
//
// The table holds for every kernel (TAXON_KERNEL), with and without assembly (-tags purego), and
// for compilers with fused multiply-add, because products and sums are kept separate. Certificates
// of the logistic loss are rounded in it, because the last bit of math.Exp differs between CPUs.
package golden
