package localcluster

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A cluster that is started again keeps what it was, but for what is given anew.
func TestSettingsAreKept(t *testing.T) {
	dir := t.TempDir()
	was := Settings{Workers: 3, Stores: 2, Slots: 4, MemoryStores: true, Lease: 7 * time.Second,
		Roots:     []string{dir, "hdfs://h/data"},
		Snapshots: filepath.Join(dir, "snapshots"), SnapshotEvery: 5, SnapshotPause: time.Minute}
	w, err := was.wanted()
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteWanted(dir, w); err != nil {
		t.Fatal(err)
	}
	var got Settings
	if err := got.keep(dir, func(string) bool { return false }); err != nil || !reflect.DeepEqual(got, was) {
		t.Errorf("%+v, %v; want %+v", got, err, was)
	}
	got = Settings{Slots: 1, Stores: 3}
	want := was
	want.Slots, want.Stores = 1, 3
	if err := got.keep(dir, func(flag string) bool { return flag == "slots" || flag == "stores" }); err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("with slots and stores given: %+v, %v; want %+v", got, err, want)
	}
	got = Settings{Stores: 1}
	if err := got.keep(dir, func(flag string) bool { return flag == "stores" }); err == nil ||
		!strings.Contains(err.Error(), "‹stores=1›") {
		t.Errorf("fewer stores: %v", err)
	}
	w.Worker = []string{"--slots", "many"}
	if err := WriteWanted(dir, w); err != nil {
		t.Fatal(err)
	}
	if err := new(Settings).keep(dir, func(string) bool { return false }); err == nil || !strings.Contains(err.Error(),
		"is damaged") {
		t.Errorf("slots that are no number: %v", err)
	}
	fresh := was
	if err := fresh.keep(t.TempDir(), nil); err != nil || !reflect.DeepEqual(fresh, was) {
		t.Errorf("in a new folder: %+v, %v", fresh, err)
	}
}
