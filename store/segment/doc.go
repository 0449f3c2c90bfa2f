// Package segment is the file format in which a durable shard keeps the values of one step of one
// job: a head, then records. Files are only ever appended to.
//
// Only the process that made a File by Create appends to it. A file that was opened again is only
// read; its step continues in a new file with a higher number. Several writers share a sync:
// Append returns when the system has the bytes, Sync when they are on the disk. A step is dropped
// by removing its files.
//
// Each record names its value, and carries the CRC32C of its own head and that of the data. So
// Scan finds all records from the file alone, up to the point where a crash has cut it.
// store/FORMAT.md has the bytes.
package segment
