package main

import (
	"context"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/model/measure"
)

// row is an instance as written in the file.
type row struct {
	labels []string
	index  []uint32
	value  []float32
}

func read(ctx context.Context, path string) (rows []row, err error) {
	r, err := dataset.OpenReader(ctx, fs.Local{}, path, dataset.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		in, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		next := row{index: slices.Clone(in.Index), value: slices.Clone(in.Value)}
		for _, l := range in.Labels {
			next.labels = append(next.labels, string(l))
		}
		rows = append(rows, next)
	}
}

// centroid measures the nearest-centroid classifier on a set's test data: it predicts the class c
// whose mean m_c has the largest cosine x.m_c / ||m_c||. Every training should be better than that.
func centroid(ctx context.Context, dir string) (*measure.Result, error) {
	train, err := read(ctx, filepath.Join(dir, "train.svm.xz"))
	if err != nil {
		return nil, err
	}
	test, err := read(ctx, filepath.Join(dir, "test.svm.xz"))
	if err != nil {
		return nil, err
	}
	c := newCentroids(train)
	acc, err := measure.NewAccumulator(measure.Options{Classes: c.names, Ranked: true})
	if err != nil {
		return nil, err
	}
	score := make([]float64, len(c.names))
	for _, r := range test {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		best := []string{c.names[c.nearest(r, score)]}
		acc.AddNames(r.labels, best, best)
	}
	result := acc.Result()
	return &result, nil
}

// centroids holds the unit means by feature.
type centroids struct {
	names []string
	at    map[uint32][]entry // feature -> classes, ascending
}

type entry struct {
	class int
	value float64
}

func newCentroids(rows []row) *centroids {
	id, sum := map[string]int{}, []map[uint32]float64{}
	c := &centroids{at: map[uint32][]entry{}}
	for _, r := range rows {
		for _, l := range r.labels {
			k, ok := id[l]
			if !ok {
				k = len(c.names)
				id[l], c.names, sum = k, append(c.names, l), append(sum, map[uint32]float64{})
			}
			for i, f := range r.index {
				sum[k][f] += float64(r.value[i])
			}
		}
	}
	for k, m := range sum {
		features, norm := make([]uint32, 0, len(m)), 0.0
		for f := range m {
			features = append(features, f)
		}
		slices.Sort(features)
		for _, f := range features {
			norm += m[f] * m[f]
		}
		for _, f := range features {
			c.at[f] = append(c.at[f], entry{k, m[f] / math.Sqrt(norm)})
		}
	}
	return c
}

// nearest returns the nearest class. Ties go to the first class. score is scratch memory.
func (c *centroids) nearest(r row, score []float64) int {
	clear(score)
	for i, f := range r.index {
		for _, e := range c.at[f] {
			score[e.class] += float64(r.value[i]) * e.value
		}
	}
	best := 0
	for k, s := range score {
		if s > score[best] {
			best = k
		}
	}
	return best
}
