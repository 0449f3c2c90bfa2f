//go:build !linux

package worker

func threadSeconds() (seconds float64, thread int) { return wallSeconds(), 0 }
