// Package all links every method into a program that imports it: the methods register themselves
// with coordinator/method/registry and worker/program. Nothing else names a method.
package all
