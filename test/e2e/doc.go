// Package e2e runs the taxon command as its users do, as a process, and checks the promises of the
// command line: the same weights for any number of threads and store shards and after any
// interruption, resuming, exit statuses, the report's keys, and that no file but the model is left.
package e2e
