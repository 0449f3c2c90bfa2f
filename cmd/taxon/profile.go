package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"taxon/internal/fs"
	"taxon/internal/ui/option"
)

// envProfile names a file with the flags for calling a cluster.
const envProfile = "TAXON_PROFILE"

// profileFlags are the flags that a profile may have. All but the first are files, whose paths
// are relative to its folder.
var profileFlags = []string{"coordinator", "tls-ca", "tls-cert", "tls-key", "token-file"}

// readProfile sets the flags that the command line leaves out, for a verb that calls a cluster.
func readProfile(cmd *cobra.Command) error {
	path := os.Getenv(envProfile)
	if path == "" || cmd.Flags().Lookup("patience") == nil || cmd.Flags().Lookup("tls-ca") == nil {
		return nil
	}
	data, err := fs.ReadBounded(cmd.Context(), path, maxJobFile)
	if err != nil {
		return err
	}
	settings, err := parseSettings(path, data)
	if err != nil {
		return err
	}
	for _, s := range settings {
		name := s.name
		if !slices.Contains(profileFlags, name) || len(s.values) != 1 || s.values[0] == "" {
			return fs.Inputf(path, s.line, "want lines `FLAG: VALUE`, with %s", strings.Join(profileFlags, ", "))
		}
		value := s.values[0]
		f := cmd.Flags().Lookup(name)
		if f == nil || f.Changed || name == "coordinator" && os.Getenv(envCoordinator) != "" {
			continue
		}
		if name != "coordinator" && !fs.IsAbs(value) {
			value = filepath.Join(filepath.Dir(path), value)
		}
		if err := f.Value.Set(value); err != nil {
			return option.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
