// Package localcluster keeps the processes of a cluster on one machine running: one coordinator,
// some stores, some workers. A Supervisor starts them, and ends them all when it is told to. A
// process that was killed is started again on the same address within half a second, one that
// ended with an error of its own within two seconds.
//
// The supervisor holds the listening sockets and passes them to its children. So an address stays
// open while its process is replaced, and callers wait.
//
// A cluster has a folder:
//
//	cluster.json      what is wanted: numbers of processes, their settings (Wanted)
//	state.json        what runs (State), written whole at each change
//	supervisor.lock   held by the living supervisor
//	logs/             what each process writes to its standard error
//
// After changing cluster.json, send the supervisor SIGHUP. A supervisor that was killed leaves
// its processes running. The next one, or Sweep, finds them in state.json and ends them first.
package localcluster
