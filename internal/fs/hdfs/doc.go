// Package hdfs reads and writes files of a Hadoop file system for internal/fs, and
// supplies what the client library leaves to its callers: parallel ranges that are read
// ahead, writing again after a data node's death (the library knows no pipeline
// recovery), patience while a name node restarts, name services of a Hadoop
// configuration, Kerberos, cancellation, and errors that say what to do.
//
// A path is hdfs://[user@]host[:port]/path or hdfs:///path. Errors keep os.ErrNotExist,
// os.ErrExist and os.ErrPermission for errors.Is; what only the user can mend beyond
// these is a *UsageError.
package hdfs
