// Package supervise keeps the processes of a cluster on one machine running: one
// coordinator, some stores, some workers. A Supervisor starts them, and ends them all when it
// is told to. A process that dies is started again on the same address within half a second;
// one that ends by itself with an error, within two seconds.
//
// The supervisor holds the listening sockets itself and hands them to its children. So an
// address is never lost while its process is being replaced, and callers wait meanwhile.
//
// A cluster lives in a folder:
//
//	cluster.json      what is wanted: numbers of processes, their settings (Wanted)
//	state.json        what runs (State), written whole at each change
//	supervisor.lock   held by the living supervisor
//	logs/             what each process writes to its standard error
//
// Whoever changes cluster.json sends the supervisor SIGHUP. A supervisor that was killed
// leaves its processes running; the next one, or Sweep, finds them in state.json and ends
// them first.
package supervise
