package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
	"taxon/internal/model/measure"
)

// disked is what a search is told to be in its folder.
type disked struct {
	begun bool
	kept  int // folds, from the first
	table bool
}

// point is all that is searched.
var point = Point{"bsvm", registry.Values{"C": "10"}}

// searched is a search on two folds, in /s on disk, that ends with the first error. gap tells searches apart.
func searched(disk vfs.FS, gap float64, force bool) (did disked) {
	r := record{fs.On(disk), "/s"}
	if errors.Join(r.free(), r.begin(searchOf(gap), force)) != nil {
		return did
	}
	did.begun = true
	for fold := range 2 {
		one := result{point, outcome{Fold: fold, Gap: gap, Measures: &measure.Result{Instances: 3}}}
		err := r.writePredictions(point, fold, 3, nil, func(row int) (labels, ranked []string) {
			return []string{"a", "b"}[:1+row%2], []string{fmt.Sprint(gap), "b"}
		})
		if err != nil || r.keep(&one) != nil {
			return did
		}
		did.kept++
	}
	did.table = r.writeJSON(r.join(tableFile), &Table{Goal: fmt.Sprint(gap)}) == nil
	return did
}

// searchOf is what is searched for with a gap.
func searchOf(gap float64) identity {
	return identity{Format: searchFormat, Folds: 2, Said: registry.Values{"gap": fmt.Sprint(gap)}}
}

// whole returns an error unless the search with a gap has what it was told to have, and all that its folder
// holds is whole and its own.
func whole(disk vfs.FS, gap float64, did disked) error {
	r := record{fs.On(disk), "/s"}
	found := 0
	for fold := range 2 {
		results, err := r.results([]Point{point}, fold)
		if err != nil {
			return err
		}
		if results == nil {
			continue
		}
		found++
		rows := 0
		err = r.predictions(point, fold, 3, func(_ int, labels, ranked []string) {
			if len(labels) == 1+rows%2 && slices.Equal(ranked, []string{fmt.Sprint(gap), "b"}) {
				rows++
			}
		})
		if err != nil || rows != 3 || results[0].Gap != gap {
			return fmt.Errorf("fold %d: result %+v, %d rows are those of gap %g, %v", fold, results[0].outcome, rows, gap, err)
		}
	}
	if found < did.kept || r.finished() != found {
		return fmt.Errorf("%d results are kept, %d are there, %d are counted", did.kept, found, r.finished())
	}
	var table Table
	if there, err := r.readJSON(r.join(tableFile), &table); err != nil || did.table && !there ||
		there && (table.Goal != fmt.Sprint(gap) || found != 2) {
		return fmt.Errorf("table %s (there %t) of %d results, %v", table.Goal, there, found, err)
	}
	return nil
}

// TestSearchOnAnyDisk fails every call to the disk while a search fills its folder, and crashes after it: what was
// told to be kept is there, all that is there is whole, and the search goes on to its end.
func TestSearchOnAnyDisk(t *testing.T) {
	use := func(disk vfs.FS) disked { return searched(disk, 0.5, false) }
	vfstest.Sweep(t, nil, use, func(disk vfs.FS, did disked) error {
		if err := whole(disk, 0.5, did); err != nil {
			return err
		}
		again := use(disk)
		if !again.table {
			return fmt.Errorf("it does not go on: %+v", again)
		}
		return whole(disk, 0.5, again)
	})
}

// TestForcedSearchOnAnyDisk is the same for a search that takes the place of another one. At each moment the
// folder says which of the two it holds, and holds nothing of the other's.
func TestForcedSearchOnAnyDisk(t *testing.T) {
	old := func(disk vfs.FS) error {
		if did := searched(disk, 0.5, false); !did.table {
			return errors.New("the first search does not end")
		}
		return nil
	}
	next := func(disk vfs.FS) disked { return searched(disk, 0.25, true) }
	vfstest.Sweep(t, old, next, func(disk vfs.FS, did disked) error {
		r := record{fs.On(disk), "/s"}
		var found identity
		there, err := r.readJSON(r.join(searchFile), &found)
		if err != nil || !there {
			return fmt.Errorf("no search (%v)", err)
		}
		switch {
		case found.same(searchOf(0.25)):
			err = whole(disk, 0.25, did)
		case did.begun:
			return errors.New("the second search is lost")
		case !found.same(searchOf(0.5)):
			return fmt.Errorf("neither of the two: %+v", found)
		}
		if err != nil {
			return err
		}
		again := next(disk)
		if !again.table {
			return fmt.Errorf("it does not go on: %+v", again)
		}
		return whole(disk, 0.25, again)
	})
}

// TestRecordIn: what a search keeps after it was interrupted is kept.
func TestRecordIn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := recordIn(ctx, t.TempDir())
	cancel()
	if err := r.begin(searchOf(1), false); err != nil || r.free() != nil || !r.has(r.join(searchFile)) {
		t.Error(err)
	}
}
