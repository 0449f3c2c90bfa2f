//go:build !linux

package main

// cores keeps a process to some cores: on Linux only.
type cores struct{}

func seesHost() bool       { return false }
func takeCores(int) *cores { return nil }
