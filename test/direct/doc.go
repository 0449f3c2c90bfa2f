// Package direct computes a training without the runtime. It records the tasks that an embedded
// engine runs, with their parameters, and runs the same tasks again by calling mapper and reducer,
// in the memory of one process: no coordinator, no store, no encoding, no messages. Equal weights
// show that the runtime does not affect the maths, and the time is the baseline for the cost of the
// runtime.
package direct
