package yarn

import (
	"debug/elf"
	"fmt"
	"os"
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
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s is no Linux program (%w): give --binary FILE", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", fmt.Errorf("%s needs libraries that the hosts may not have: build it with CGO_ENABLED=0, or give --binary FILE", path)
		}
	}
	return path, nil
}
