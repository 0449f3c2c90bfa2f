package mapreduce

import (
	"errors"
	"os"

	"taxon/internal/fs"
	"taxon/internal/yarn"
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
	conf := yarn.Conf{}
	if err := conf.Parse(b); err != nil {
		return "", fs.Inputf(path, 0, "is no Hadoop configuration: %w", err)
	}
	return conf[name], nil
}

// CheckBinary refuses a program that other machines may lack the libraries of.
func CheckBinary(path string) error {
	if static, err := yarn.IsStatic(path); err != nil || static { // of another system: what it needs is not known here
		return nil
	}
	return fs.Inputf(path, 0, "this binary is linked with libraries of this machine, which a cluster's machines may lack: build it with CGO_ENABLED=0")
}
