// Package deploy checks the files under deploy/ without a cluster, a network or additional tools.
// The Kubernetes manifests are built as `kubectl apply -k` would, decoded strictly into the API's
// own Go types (an unknown or misplaced field is an error, as is a value of the wrong type), and
// checked against each other and against the rules that they promise to keep. Systemd units and
// scripts are checked for their rules.
package deploy

import "path/filepath"

// check returns the problems of a repository's deploy folder and of the documents about it, and the
// number of things that it has checked.
func check(root string) (problems []string, checked int) {
	dir := filepath.Join(root, "deploy")
	var objects []object
	for _, folder := range []string{"kubernetes", "kubernetes/client"} {
		more, err := build(filepath.Join(dir, folder))
		if err != nil {
			return []string{err.Error()}, 0
		}
		objects = append(objects, more...)
	}
	secrets, err := runSecrets(filepath.Join(dir, "kubernetes"))
	if err != nil {
		return []string{err.Error()}, 0
	}
	problems = append(problems, checkObjects(objects, secrets)...)
	documents := []string{filepath.Join(root, "docs", "deploy.md"), filepath.Join(root, "docs", "observability.md")}
	for _, d := range documents {
		shown, err := checkDocument(d)
		if err != nil {
			return []string{err.Error()}, 0
		}
		problems = append(problems, shown...)
	}
	compaction, err := checkCompaction(filepath.Join(root, "coordinator", "server.go"),
		append(documents, filepath.Join(dir, "kubernetes", "coordinator.yaml")))
	if err != nil {
		return []string{err.Error()}, 0
	}
	problems = append(problems, compaction...)
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
