// Package all links every method into a program that imports it: each method registers itself with
// coordinator/method/registry and worker/program in init. No other package lists the methods.
package all
