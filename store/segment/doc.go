// Package segment is the file format in which a durable shard keeps the values of one
// step of one job: a head and then records, one behind the other, only ever appended.
//
// A File made by Create is appended to by this process alone; opened again later it is
// only read, and its step goes on in a new file with a higher number. Several writers
// share a sync: Append returns when the bytes are with the system, Sync when they are on
// the disk. A step is dropped by removing its files.
//
// Each record names its value and carries the CRC32C of its head, beside that of the
// data, so that Scan finds all records again without anything else, up to where a crash
// has cut the file. store/FORMAT.md has the bytes.
package segment
