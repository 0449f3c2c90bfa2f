// Command deploycheck checks what is under deploy/ without a cluster, a network or tools that
// would have to be installed: the Kubernetes manifests are built as `kubectl apply -k` would,
// decoded strictly into the API's own Go types (an unknown or misplaced field is an error, as is
// a value of the wrong type) and checked against each other and against the rules that the
// manifests promise to keep; systemd units and scripts are checked for theirs.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the repository")
	flag.Parse()
	problems, checked := check(filepath.Join(*root, "deploy"))
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
	fmt.Printf("deploy: %d objects and files are as they should be\n", checked)
}

// check gives the problems of a deploy folder, and how many things it looked at.
func check(dir string) (problems []string, checked int) {
	objects, err := build(filepath.Join(dir, "kubernetes"))
	if err != nil {
		return []string{err.Error()}, 0
	}
	problems = append(problems, checkObjects(objects)...)
	unlisted, err := notListed(filepath.Join(dir, "kubernetes"))
	if err != nil {
		problems = append(problems, err.Error())
	}
	problems = append(problems, unlisted...)
	units, n, err := checkUnits(filepath.Join(dir, "systemd"))
	if err != nil {
		problems = append(problems, err.Error())
	}
	return append(problems, units...), len(objects) + n
}
