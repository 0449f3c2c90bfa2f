// Package release says which release of taxon this process is, and with which others it works.
// The processes of a cluster send both with every call. Two releases work together if they use
// the same protocol, whatever their versions.
package release

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
)

// The linker may set both variables: -ldflags "-X taxon/internal/cluster/release.version=v1.2.3".
var (
	// version is the release. If it is empty, it is the module's version.
	version string
	// protocol is the protocol. Tests may set another one.
	protocol = thisFormat
)

// thisFormat is raised when processes of two releases could not train one job together: a message,
// or a value in the store, has another meaning than before, or the same data, options and seed give
// other bytes (test/golden was rewritten). Additions do not raise it.
const thisFormat = "1"

// Version returns the release, or "(devel)".
func Version() string {
	if version != "" {
		return version
	}
	return ofModule()
}

// ofModule returns the version of the module.
var ofModule = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
})

// Protocol returns the protocol of this release.
func Protocol() string { return protocol }

// Key is the metadata key under which a call sends the release.
const Key = "taxon-release"

// Words returns what is sent: the protocol, a blank, the version.
func Words() string { return protocol + " " + Version() }

// Check refuses a caller with another protocol. A caller that sent nothing is not a process of
// taxon's, but for example grpcurl or a user's own program.
func Check(words string) error {
	theirs, version, _ := strings.Cut(words, " ")
	if words == "" || theirs == protocol {
		return nil
	}
	return fmt.Errorf("it is taxon %s, which speaks cluster protocol %s, and the caller is taxon %.64s, which speaks "+
		"%.16s: run releases of one protocol (`taxon version` tells)", Version(), protocol, version, theirs)
}
