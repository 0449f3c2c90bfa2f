// Package release says which release of taxon this process is, and which others it works with.
//
// Processes of a cluster tell each other both with every call. Two releases work together if they
// speak the same protocol, whatever their versions are.
package release

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
)

// Both may be set by the linker, -ldflags "-X taxon/internal/release.version=v1.2.3".
var (
	version  string       // "": that of the module
	protocol = thisFormat // else a test's
)

// thisFormat is raised when processes of two releases could not train one job together: when a
// message, or a value in the store, means something else than before, or when the same data, options
// and seed give other bytes (test/golden was written anew). What is only added raises nothing.
const thisFormat = "1"

// Version is the release, or "(devel)".
func Version() string {
	if version != "" {
		return version
	}
	return ofModule()
}

var ofModule = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
})

// Protocol is what its processes speak.
func Protocol() string { return protocol }

// Key is the name under which a call says whose it is.
const Key = "taxon-release"

// Words says it: the protocol, a blank, the version.
func Words() string { return protocol + " " + Version() }

// Check refuses a caller that said words. One that said nothing is not from here: grpcurl, or a
// program of somebody's own, whose messages tell.
func Check(words string) error {
	theirs, version, _ := strings.Cut(words, " ")
	if words == "" || theirs == protocol {
		return nil
	}
	return fmt.Errorf("it is taxon %s, which speaks cluster protocol %s, and the caller is taxon %.64s, which speaks %.16s: run releases of one protocol (`taxon version` tells)", Version(), protocol, version, theirs)
}
