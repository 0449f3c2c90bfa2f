//go:build !amd64 || purego

package reducer

// fastest are the loops for this CPU: none but Go's.
func fastest() stripLoops { return goLoops }
