// Package cluster is what processes of a cluster and their clients share: connections
// that wait for a process that is being replaced, the data sets that submitters put into
// the store and workers keep on their disks, and the seal that turns the weights of a
// finished job into one checksum.
//
// A data set travels as the files of its folder (package dataset), cut into parts, under
// a job id of its own that is made from its fingerprint: whoever submits the same data
// again finds it there. Nothing that arrives is believed before its checksums were
// compared with the fingerprint that the job names.
package cluster
