package mapreduce

import (
	"debug/elf"
	"encoding/xml"
	"errors"
	"os"
	"strings"

	"taxon/internal/fs"
)

// Property reads a property of one of Hadoop's configuration files; "": it is not set, or
// there is no such file.
func Property(path, name string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fs.Explain(path, err)
	}
	var conf struct {
		Property []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
		} `xml:"property"`
	}
	if err := xml.Unmarshal(b, &conf); err != nil {
		return "", fs.Inputf(path, 0, "is no Hadoop configuration: %w", err)
	}
	value := ""
	for _, p := range conf.Property { // the last one counts, as with Hadoop
		if strings.TrimSpace(p.Name) == name {
			value = strings.TrimSpace(p.Value)
		}
	}
	return value, nil
}

// CheckBinary refuses a program that other machines may lack the libraries of.
func CheckBinary(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return nil // of another system: what it needs is not known here
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fs.Inputf(path, 0, "this binary is linked with libraries of this machine, which a cluster's machines may lack: build it with CGO_ENABLED=0")
		}
	}
	return nil
}
