package yarn

import (
	"debug/elf"
	"fmt"
	"os"
	"slices"
)

// StaticProgram is the path of a binary that runs on any Linux host of its architecture, or
// an error that says why it would not; "": of this program.
func StaticProgram(path string) (string, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("where is this program? %w: give --binary", err)
		}
		path = self
	}
	static, err := IsStatic(path)
	if err != nil {
		return "", fmt.Errorf("%s is no Linux program (%w): give --binary FILE", path, err)
	}
	if !static {
		return "", fmt.Errorf("%s needs libraries that the hosts may not have: build it with CGO_ENABLED=0, or give --binary FILE", path)
	}
	return path, nil
}

// IsStatic says whether a Linux program needs no libraries of its host.
func IsStatic(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}
