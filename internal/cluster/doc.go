// Package cluster has what the processes of a cluster share with their clients:
//
//   - Dialer and Shards make connections that wait for a process that is being replaced;
//   - Upload and DataStore keep data sets in the store, and workers cache them on their disks;
//   - Digester computes a checksum of a finished job's weights;
//   - Snapshots keeps what jobs continue from if the store has lost their values.
//
// A data set is transferred as the files of its folder (package dataset), cut into parts. Its job
// id in the store is derived from its fingerprint, so that whoever submits the same data again
// finds them there. Received data are used only after their checksums match the fingerprint in the
// job.
package cluster
