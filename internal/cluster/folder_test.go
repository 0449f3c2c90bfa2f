package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFolders(t *testing.T) {
	const own, others = true, false
	for _, test := range []struct {
		name                       string
		holds                      []string
		coord, store, super, cache bool
	}{
		{"new", nil, own, own, own, own},
		{"coordinator", []string{"journal", "journal.lock", "seals/x", "spool/x", "cluster.id"}, own, others, others, others},
		{"coordinator of before", []string{"journal"}, own, others, others, others},
		{"store", []string{"shard.id", "values/x"}, others, own, others, others},
		{"cluster", []string{"cluster.json", "store-0/shard.id", "logs/x"}, others, others, own, others},
		{"with mounts", []string{"coordinator/x", "lost+found/x"}, others, others, own, own},
		{"somebody's", []string{"README.md"}, others, others, others, own},
		{"an empty disk", []string{"lost+found/x", ".snapshot/x"}, own, own, own, own},
	} {
		dir := filepath.Join(t.TempDir(), "d")
		for _, name := range test.holds {
			write(t, filepath.Join(dir, name), "x")
		}
		for what, c := range map[string]struct {
			check func(string) error
			want  bool
		}{"coordinator": {CoordinatorFolder, test.coord}, "store": {StoreFolder, test.store}, "cluster": {SupervisorFolder,
			test.super}, "cache": {WorkerFolder, test.cache}} {
			if err := c.check(dir); (err == nil) != c.want {
				t.Errorf("%s as folder of a %s: %v", test.name, what, err)
			}
		}
		if _, err := os.Stat(dir); len(test.holds) == 0 && err == nil {
			t.Error("the folder was made")
		}
	}
}
