// Package supervise keeps the processes of a cluster on one machine running: one
// coordinator, some stores, some workers. A Supervisor starts them, starts again within
// half a second what dies, on the same address (a process that ends by itself with an error: within two
// seconds), and ends them all when it is told to.
//
// The supervisor holds the listening sockets itself and hands them to its children, so an
// address is never lost while its process is being replaced: who calls meanwhile waits.
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
