// Package fs is the edge between taxon and files. It opens inputs (a local path, hdfs://, or -
// for standard input), decompresses them by content, publishes files and folders in one step, and
// turns the operating system's errors into one clear line.
//
// FS is a file system wherever it is: For chooses that of a path, On makes one of a vfs.FS, such as one of
// a test's that fails or crashes. What only a disk can do is in package vfs. The functions Stat, ReadFile and
// the like are For and one call.
//
// There are two kinds of errors. An *InputError means that the command line or the data are wrong
// (exit status 2): a missing file, a folder given for a file, no permission, a truncated gzip
// stream, a broken line. Every other error is a failure of the machine (exit status 1): a full
// disk, a failing device. IsInput tells them apart.
package fs
