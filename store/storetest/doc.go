// Package storetest is the conformance suite of store.Store: whatever passes it
// can stand behind the coordinator and the workers. Each implementation calls Run
// from its own tests with a Harness that says how to make, damage and reopen it.
package storetest
