//go:build !linux

package main

func slacken([]string) {}
