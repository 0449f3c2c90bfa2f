package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// refRow is a row as the simple reference parser reads it.
type refRow struct {
	labels []string
	values map[uint32]float32
}

// refParse reads well-formed lines with strings.Fields and strconv only.
func refParse(text string) (rows []refRow) {
	for _, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		fields := strings.Fields(line)
		if line == "" || len(fields) > 0 && strings.HasPrefix(fields[0], "#") {
			continue
		}
		row := refRow{values: map[uint32]float32{}}
		if line[0] != ' ' && line[0] != '\t' && !strings.Contains(fields[0], ":") {
			for _, l := range strings.Split(fields[0], ",") {
				if !slices.Contains(row.labels, l) {
					row.labels = append(row.labels, l)
				}
			}
			fields = fields[1:]
		}
		for _, f := range fields {
			if f[0] == '#' {
				break
			}
			index, value, _ := strings.Cut(f, ":")
			i, err1 := strconv.ParseUint(index, 10, 31)
			v, err2 := strconv.ParseFloat(value, 32)
			if err1 != nil || err2 != nil {
				panic(line)
			}
			if v != 0 {
				row.values[uint32(i)] = float32(v)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// refSet is the expected result of Ingest, computed in the simplest way.
type refSet struct {
	labels  []string
	feature []uint32
	df      map[uint32]int
}

func refIngest(rows []refRow) refSet {
	s := refSet{df: map[uint32]int{}}
	for _, r := range rows {
		for _, l := range r.labels {
			if !slices.Contains(s.labels, l) {
				s.labels = append(s.labels, l)
			}
		}
		for i := range r.values {
			s.df[i]++
		}
	}
	s.feature = slices.SortedFunc(maps.Keys(s.df), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(s.df[b], s.df[a]), cmp.Compare(a, b))
	})
	return s
}

func checkAgainstReference(t interface{ Fatalf(string, ...any) }, s *Set, rows []refRow) {
	ref := refIngest(rows)
	if s.Matrix.Rows != len(rows) || !slices.Equal(s.Labels, ref.labels) || !slices.Equal(s.Feature, ref.feature) ||
		s.Matrix.Cols != len(ref.feature) {
		t.Fatalf("%d rows, labels %q, features %v; want %d, %q, %v", s.Matrix.Rows, s.Labels, s.Feature, len(rows),
			ref.labels, ref.feature)
	}
	for c, f := range s.Feature {
		if int(s.FeatureRows[c]) != ref.df[f] {
			t.Fatalf("feature %d stands in %d rows, want %d", f, s.FeatureRows[c], ref.df[f])
		}
	}
	positives := make([][]uint32, len(s.Labels))
	for i, r := range rows {
		index, value := s.Matrix.Row(i)
		if len(index) != len(r.values) {
			t.Fatalf("row %d has %d values, want %d", i, len(index), len(r.values))
		}
		for k, c := range index {
			if math.Float32bits(r.values[s.Feature[c]]) != math.Float32bits(value[k]) {
				t.Fatalf("row %d, feature %d: %v, want %v", i, s.Feature[c], value[k], r.values[s.Feature[c]])
			}
		}
		var ids []uint32
		for _, l := range r.labels {
			ids = append(ids, uint32(slices.Index(s.Labels, l)))
		}
		slices.Sort(ids)
		if got := s.LabelIndex[s.LabelBegin[i]:s.LabelBegin[i+1]]; !slices.Equal(got, ids) {
			t.Fatalf("row %d has labels %v, want %v", i, got, ids)
		}
		for _, id := range ids {
			positives[id] = append(positives[id], uint32(i))
		}
	}
	for l, want := range positives {
		if got := s.PosRows[s.PosBegin[l]:s.PosBegin[l+1]]; !slices.Equal(got, want) {
			t.Fatalf("label %d has rows %v, want %v", l, got, want)
		}
	}
}

// drawLines generates well-formed libsvm text that uses every freedom of the grammar.
func drawLines(t *rapid.T) string {
	blank := rapid.SampledFrom([]string{" ", "\t", "  ", " \t "})
	end := rapid.SampledFrom([]string{"\n", "\r\n", " \n", " # c 1:1\n", "\n\n", "\n# c\n"})
	number := rapid.SampledFrom([]string{"1", "-0.25", "+3.5", "1e-3", "0", "0.3333333", "16777217",
		"1.00000005960464477539", ".5", "7."})
	var b strings.Builder
	for range rapid.IntRange(1, 30).Draw(t, "rows") {
		labels := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "x-1", "17", "é", "long/name#2"}), 0, 3).Draw(t,
			"labels")
		b.WriteString(strings.Join(labels, ","))
		for _, i := range rapid.SliceOfNDistinct(rapid.OneOf(rapid.Uint32Range(1, 9), rapid.Uint32Range(1, maxIndex)), 0, 8,
			rapid.ID[uint32]).Draw(t, "indices") {
			fmt.Fprintf(&b, "%s%d:%s", blank.Draw(t, "blank"), i, number.Draw(t, "number"))
		}
		b.WriteString(end.Draw(t, "end"))
	}
	return b.String() + "z 1:1"
}

// TestAgainstReference compares ingested sets with the reference parser's.
func TestAgainstReference(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := drawLines(rt)
		n++
		s := ingestString(rt, fmt.Sprintf("%s/%d", dir, n), text, Options{})
		defer s.Close()
		checkAgainstReference(rt, s, refParse(text))
	})
}

// TestManyShards crosses the border of a shard. Its memory bound is so small that the postings take
// several passes and one label is streamed.
func TestManyShards(t *testing.T) {
	var b strings.Builder
	const rows = 1<<16 + 1<<15
	for i := range rows {
		fmt.Fprintf(&b, "%s %d:1 %d:0.5\n", []string{"all", "all,odd", "all,l" + strconv.Itoa(i%50)}[i%3], i%1000+1, i%7+2000)
	}
	text := b.String()
	s := ingestString(t, t.TempDir()+"/set", text, Options{MemoryBytes: 1 << 20, Threads: 3})
	defer s.Close()
	if len(s.Matrix.Shards) != 2 || s.PosBegin[1] <= 1<<20/16 {
		t.Fatalf("%d shards, first label has %d rows: the test misses its point", len(s.Matrix.Shards), s.PosBegin[1])
	}
	checkAgainstReference(t, s, refParse(text))
}
