// Package yarn places a cluster of taxon's processes on Hadoop YARN, as a YARN service with the
// components coordinator, store and worker. It writes the service's definition and checks it
// against what the resource manager says it has. It launches, scales, watches and removes the
// service by the resource manager's REST API, or by the command yarn where that API is closed.
//
// Up copies what the processes need to a folder in HDFS and starts the service there. Open finds
// a Deployment, which can be scaled, described and ended. A Problem is an error worded for its
// user; the caller puts the verb before it. Run says with which arguments the processes are
// started; the command decides what they do with them.
//
// Reference: "YARN Service API" and "ResourceManager REST API's" of Apache Hadoop 3.4.
package yarn
