// Package cluster has what the processes of a cluster share with their clients:
//
//   - connections that wait for a process that is being replaced;
//   - data sets, which submitters put into the store and workers keep on their disks;
//   - the digest, a checksum of a finished job's weights;
//   - snapshots, from which jobs continue if the store has lost their values.
//
// A data set is transferred as the files of its folder (package dataset), cut into parts. Its job
// id in the store is made from its fingerprint. So whoever submits the same data again finds them
// there. What arrives is used only after its checksums match the fingerprint in the job.
package cluster
