package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"taxon/internal/cluster/release"
	"taxon/mapper"
)

// versionReport is the JSON output of `taxon version`.
type versionReport struct {
	Version string `json:"version"`
	// Protocol is the version of the cluster's protocol. Processes with the same protocol version
	// work together.
	Protocol string `json:"protocol"`
	// Revision is the revision of the sources, if the build knows it.
	Revision string `json:"revision,omitempty"`
	// Modified reports that the build is from a tree with uncommitted changes.
	Modified bool `json:"modified,omitempty"`
	// Time is the time of the revision, in RFC 3339.
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Kernels lists the solver kernels for this CPU, the fastest first.
	Kernels []string `json:"kernels"`
}

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		GroupID: groupOther,
		Short:   "the version, what it was built from, the kernels for this CPU",
		Long: "Prints the version of this binary, the revision of the sources it was built from, the Go version, " +
			"the platform and the solver kernels that this CPU can run, the fastest first; TAXON_KERNEL=NAME forces one. Put " +
			"its output into every report of a fault.",
		Example: "taxon version\ntaxon version --json",
		RunE:    func(*cobra.Command, []string) error { return printVersion(a) },
	}
}

func readVersion() versionReport {
	r := versionReport{
		Version:  release.Version(),
		Protocol: release.Protocol(),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	for _, k := range mapper.Kernels() {
		r.Kernels = append(r.Kernels, k.String())
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Revision = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		case "vcs.time":
			r.Time = s.Value
		}
	}
	return r
}

func printVersion(a *app) error {
	r := readVersion()
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.stdout, "taxon %s\n", r.Version)
	if r.Revision != "" {
		note := ""
		if r.Modified {
			note = ", with changes not committed"
		}
		fmt.Fprintf(a.stdout, "revision  %s%s\n", r.Revision, note)
	}
	fmt.Fprintf(a.stdout, "protocol  %s, of a cluster's processes\n", r.Protocol)
	fmt.Fprintf(a.stdout, "built by  %s for %s\n", r.Go, r.Platform)
	fmt.Fprintf(a.stdout, "kernels   %s\n", strings.Join(r.Kernels, ", "))
	return nil
}
