//go:build !amd64 || purego

package reducer

// fastest returns the loops in Go, because this CPU has no others.
func fastest() stripLoops { return goLoops }
