// Package hdfs reads and writes files of a Hadoop file system for internal/fs. It supplies what
// the client library leaves to its callers:
//
//   - ranges that are read ahead in parallel;
//   - writing a file again after a data node's death (the library knows no pipeline recovery);
//   - waiting while a name node restarts;
//   - name services of a Hadoop configuration, Kerberos, cancellation;
//   - errors that say what to do.
//
// A path is hdfs://[user@]host[:port]/path or hdfs:///path. Errors keep os.ErrNotExist,
// os.ErrExist and os.ErrPermission for errors.Is. Other errors that only the user can mend,
// such as no name node at the path's host, are a *vfs.InputError without a path.
package hdfs
