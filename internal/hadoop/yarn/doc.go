// Package yarn runs a cluster of taxon's processes on Hadoop YARN, as a YARN service with the
// components coordinator, store and worker. It writes the service's definition and checks it
// against the resources that the resource manager offers. It launches, scales, watches and removes
// the service by the resource manager's REST API, or by the command yarn if that API is closed.
//
// Up copies the files that the processes need to a folder in HDFS and starts the service. Open
// finds a Deployment, which can be scaled, described and ended. A Problem is an error worded for
// the user; the caller puts the verb before it. Run holds the arguments of the processes; the
// command interprets them.
//
// References: "YARN Service API" and "ResourceManager REST API's" of Apache Hadoop 3.4.
package yarn
