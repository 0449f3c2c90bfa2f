// Package hadoop installs and runs real Apache Hadoop (3.4.2, from Maven Central's jars) on
// this machine, for tests: nothing in it stands in for Hadoop's own code. Everything listens
// on loopback. The suite that local and HDFS file systems both pass is in its tests;
// `make hadoop-short` runs it.
package hadoop
