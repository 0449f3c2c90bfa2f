package dataset_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
)

// Ingest turns lines into a mapped matrix whose first columns are the most frequent features.
func ExampleIngest() {
	dir, err := os.MkdirTemp("", "taxon-example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	lines := "dog,pet 17:1 4:0.5\ncat,pet 4:2\n"
	report, err := dataset.Ingest(context.Background(), dataset.Options{
		Paths: []string{fs.Stdin}, FS: fs.Local{In: strings.NewReader(lines)}, Out: filepath.Join(dir, "set"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := dataset.Open(filepath.Join(dir, "set"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close()
	fmt.Println(report.Stats.Rows, "rows, labels", set.Labels, "features", set.Feature)
	index, value := set.Matrix.Row(0)
	fmt.Println(index, value, "rows of pet:", set.PosRows[set.PosBegin[1]:set.PosBegin[2]])
	// Output:
	// 2 rows, labels [dog pet cat] features [4 17]
	// [0 1] [0.5 1] rows of pet: [0 1]
}

// A Projection maps later rows to the same columns. Unknown features are dropped.
func ExampleProjection() {
	p := dataset.NewProjection([]uint32{4, 17})
	r := dataset.NewReader(strings.NewReader("1:3 17:0.25\n"), dataset.ReaderOptions{Name: "test.svm"})
	var v dataset.Vector
	for {
		row, err := r.Read()
		if err == io.EOF {
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		p.Row(row, &v)
		fmt.Println(row.Line, v.Index, v.Value)
	}
	// Output: 1 [1] [0.25]
}

// Errors name the file and the line, and the remedy.
func ExampleReader() {
	r := dataset.NewReader(strings.NewReader("a 1:1\nb 0:1\n"), dataset.ReaderOptions{Name: "train.svm"})
	for {
		if _, err := r.Read(); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output: train.svm:2: feature index 0: indices start at 1 (use ‹zero-based› for files that count from 0)
}
