// Package storetest is the conformance suite of store.Store. The coordinator and the
// workers can use every store that passes it. Each implementation calls Run from its
// own tests, with a Harness that says how to make, damage and reopen it.
package storetest
