package hadoop

import (
	"context"
	_ "embed" // the list of jars
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed pom.xml
var pom []byte

// ErrMissing says that this machine lacks programs that Hadoop needs.
var ErrMissing = errors.New("real Hadoop needs java (17) and, for the first time, mvn on the PATH")

// Install returns the folder of Hadoop's jars. The first time, Maven downloads them into the user's
// cache (118 MB, under a minute). Each list of jars has a folder of its own.
func Install(ctx context.Context) (lib string, err error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", ErrMissing
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	base := filepath.Join(cache, "taxon", fmt.Sprintf("hadoop-%08x", crc32.ChecksumIEEE(pom)))
	lib = filepath.Join(base, "lib")
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return "", ErrMissing
	}
	if err := os.MkdirAll(base, 0o777); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(base, "lib.*.part")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	file := filepath.Join(base, "pom.xml")
	if err := os.WriteFile(file, pom, 0o666); err != nil {
		return "", err
	}
	mvn := exec.CommandContext(ctx, "mvn", "-q", "-B", "-ntp", "-f", file, "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DexcludeClassifiers=tests,osx-x86_64,osx-aarch_64,linux-aarch_64,linux-riscv64",
		"-DoutputDirectory="+temp)
	if out, err := mvn.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mvn: %w: %.500s", err, out)
	}
	if err := os.Rename(temp, lib); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return lib, nil
}
