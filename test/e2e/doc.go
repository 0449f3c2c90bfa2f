// Package e2e runs the taxon command as its users do, as a process, and checks what the
// command line promises: the same weights for any number of threads and store shards and
// after any interruption, resuming, exit statuses, the report's keys, and that nothing
// but the model is left behind.
package e2e
