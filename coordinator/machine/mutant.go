//go:build !mutant

package machine

// planted reports whether a bug was planted on purpose, to test that the simulation finds it (make
// sim-mutants). In this build it is always false, and the compiler removes the branches.
func planted(string) bool { return false }
