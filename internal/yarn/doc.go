// Package yarn places a cluster of taxon's processes on Hadoop YARN, as a YARN service:
// it writes the definition (components coordinator, store and worker), checks it against
// what the resource manager says it has, and launches, scales, watches and removes it by the
// resource manager's REST API, or by the command yarn where that API is closed.
//
// It knows YARN's side only. What the processes do with the files and arguments that they
// get is the command's business; Run says what they are started with.
//
// Reference: "YARN Service API" and "ResourceManager REST API's" of Apache Hadoop 3.4.
package yarn
