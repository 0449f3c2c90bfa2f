// Package segment is the file format in which a durable shard keeps the values of one step of
// one job: a head, then records, one behind the other. Files are only ever appended to.
//
// Only the process that made a File by Create appends to it. Opened again later, it is only read,
// and its step continues in a new file with a higher number. Several writers share a sync: Append
// returns when the system has the bytes, Sync when they are on the disk. A step is dropped by
// removing its files.
//
// Each record names its value. It carries the CRC32C of its own head and that of the data. So
// Scan finds all records again without anything else, up to where a crash has cut the file.
// store/FORMAT.md has the bytes.
package segment
