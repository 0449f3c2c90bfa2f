// Package storetest is the conformance suite of store.Store. Coordinator and workers can use any
// store that passes it. Each implementation calls Run in its tests, with a Harness that says how
// to make, damage and reopen it.
package storetest
