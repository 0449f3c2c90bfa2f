// Package cluster holds what the processes of a cluster share with their clients:
//
//   - connections that wait for a process that is being replaced;
//   - the data sets that submitters put into the store and workers keep on their disks;
//   - the digest, which turns the weights of a finished job into one checksum.
//
// A data set travels as the files of its folder (package dataset), cut into parts. It has a job
// id of its own, made from its fingerprint, so whoever submits the same data again finds it
// there. What arrives is used only after its checksums match the fingerprint that the job names.
package cluster
