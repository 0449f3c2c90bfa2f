// Package golden holds what trainings give to the byte: testdata/golden.txt has a line for
// each training of cases_test.go, with the hash of its weights, its sweeps, its certificate
// and what stopped it. A refactoring changes no line of it. A change of the algorithm does,
// and then the table is written anew on purpose:
//
//	go test ./test/golden -rewrite
//
// The trainings are run by the command line, as users run them, since its flags and the keys
// of its JSON outlive what is moved behind them. The data come from `taxon generate`, from
// the text of `taxon demo` and from data_test.go, each with a fixed seed; the table has their
// hashes too, so that other data are not taken for other weights.
//
// testdata/kept* are folders as this program left them, or a release: models, and a
// checkpoint of an interrupted training. Later versions open them, or refuse them in one line
// that says what to do. Each release leaves one:
//
//	go test ./test/golden -run TestKeep -keep kept-RELEASE && go test ./test/golden -rewrite
//
// Journals, shards and snapshots of a cluster are kept beside the
// packages that read them.
//
// The table holds for every kernel (TAXON_KERNEL), with and without assembly (-tags purego),
// and for compilers that fuse products and sums, as those are kept apart. Certificates of
// the logistic loss are rounded in it, as math.Exp differs from CPU to CPU in its last bit.
package golden
