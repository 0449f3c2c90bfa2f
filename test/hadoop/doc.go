// Package hadoop installs and runs real Apache Hadoop (3.4.2, from Maven Central's jars) on this
// machine, for tests: none of Hadoop's own code is replaced. Everything listens on loopback. Its
// tests contain the suite that both local and HDFS file systems pass; `make hadoop-short` runs it.
package hadoop
