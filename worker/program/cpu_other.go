//go:build !linux

package program

func threadSeconds() float64 { return wallSeconds() }
