//go:build !linux

package worker

func threadSeconds() float64 { return wallSeconds() }
