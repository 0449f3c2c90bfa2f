// Package direct does a training's sums without the machine around them: it records the
// tasks that an embedded engine runs, with their parameters, and runs the same tasks
// again by calling mapper and reducer, in one process's memory: no coordinator, no store,
// no encoding, no messages. Equal weights show that the machine adds nothing to the
// maths; the time it takes is what the machine's own is measured against.
package direct
