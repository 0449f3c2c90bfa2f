// Package yarn places a cluster of taxon's processes on Hadoop YARN, as a YARN service:
// it writes the definition (components coordinator, store and worker), checks it against
// what the resource manager says it has, and launches, scales, watches and removes it by the
// resource manager's REST API, or by the command yarn where that API is closed.
//
// Up copies what the processes need to a folder in HDFS and starts the service there. A
// Deployment, which Open finds, is scaled, described and ended. A Problem is an error worded for
// its user; the caller puts the verb before it. Run says what the processes are started with;
// what they do with it is the command's business.
//
// Reference: "YARN Service API" and "ResourceManager REST API's" of Apache Hadoop 3.4.
package yarn
