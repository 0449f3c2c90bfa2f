//go:build !mutant

package machine

// planted says whether a bug was planted on purpose, to see that the simulation finds it
// (make sim-mutants). In this build none ever is, and the compiler drops the branches.
func planted(string) bool { return false }
