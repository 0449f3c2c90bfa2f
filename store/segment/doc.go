// Package segment implements the files in which a durable shard keeps the values of one step of one
// job: a head, then records, one after the other. Files are only appended to.
//
// Only the process that made a File by Create appends to it. A file that is opened again is only
// read, and its step continues in a new file with a higher number. A step is dropped by removing
// its files.
//
// A value is durable in this order: Append returns when the system has its bytes, and Sync of the
// end that Append returned when they are on the disk. A caller acknowledges a value only after
// Sync. Several writers share a sync.
//
// Each record names its value and has the CRC32C of its own head and that of the data. So Scan
// finds all records again without an index, up to where a crash has cut the file. store/FORMAT.md
// has the bytes.
package segment
