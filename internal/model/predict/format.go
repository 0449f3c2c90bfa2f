package predict

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"taxon/internal/model"
)

// Formats are the formats of predictions.
var Formats = []string{"lines", "csv", "jsonl", "parquet"}

// answer is the output for an instance.
type answer struct {
	// Row starts at 1.
	Row int64 `json:"row"`
	// ID is nil if the rows have none.
	ID     *string `json:"id"`
	Labels []named `json:"labels"`
}

// named is a predicted label.
type named struct {
	Label string  `json:"label"`
	Score float64 `json:"score"`
	Path  string  `json:"path"`
}

// answers writes predictions in one format.
type answers interface {
	write(a *answer) error
	// flush writes the answers so far.
	flush() error
	close() error
}

// newAnswers starts the output, with room for a number of labels per instance.
func newAnswers(format string, w io.Writer, places int) (answers, error) {
	switch format {
	case "csv":
		c := &csvAnswers{to: csv.NewWriter(w), row: columnNames(places)}
		return c, c.to.Write(c.row)
	case "jsonl":
		buffered := bufio.NewWriter(w)
		j := &jsonAnswers{buf: buffered, to: json.NewEncoder(buffered)}
		j.to.SetEscapeHTML(false)
		return j, nil
	}
	schema := parquetSchema(places)
	return &parquetAnswers{to: parquet.NewGenericWriter[any](w, schema, parquet.CreatedBy("taxon", "", ""),
		parquet.Compression(&parquet.Zstd)), places: places}, nil
}

// columnNames returns the names of a table's columns.
func columnNames(places int) []string {
	names := []string{"row", "id"}
	for k := 1; k <= places; k++ {
		for _, what := range []string{"label", "score", "path"} {
			names = append(names, fmt.Sprintf("%s_%d", what, k))
		}
	}
	return names
}

type csvAnswers struct {
	to  *csv.Writer
	row []string
}

func (c *csvAnswers) write(a *answer) error {
	clear(c.row)
	c.row[0] = strconv.FormatInt(a.Row, 10)
	if a.ID != nil {
		c.row[1] = *a.ID
	}
	for k, l := range a.Labels {
		c.row[2+3*k], c.row[3+3*k], c.row[4+3*k] = l.Label, strconv.FormatFloat(l.Score, 'g', -1, 64), l.Path
	}
	return c.to.Write(c.row)
}

func (c *csvAnswers) flush() error { c.to.Flush(); return c.to.Error() }
func (c *csvAnswers) close() error { return c.flush() }

type jsonAnswers struct {
	buf *bufio.Writer
	to  *json.Encoder
}

func (j *jsonAnswers) write(a *answer) error {
	if a.Labels == nil {
		a.Labels = []named{}
	}
	return j.to.Encode(a)
}

func (j *jsonAnswers) flush() error { return j.buf.Flush() }
func (j *jsonAnswers) close() error { return j.flush() }

type parquetAnswers struct {
	to     *parquet.GenericWriter[any]
	places int
	row    parquet.Row
}

// parquetSchema returns the schema with the columns in the order of columnNames.
func parquetSchema(places int) *parquet.Schema {
	var fields []reflect.StructField
	for i, name := range columnNames(places) {
		of, tag := reflect.TypeFor[*string](), name+",optional"
		switch {
		case i == 0:
			of, tag = reflect.TypeFor[int64](), name
		case i > 1 && i%3 == 0:
			of = reflect.TypeFor[*float64]()
		case i > 1:
			tag += ",dict"
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: of,
			Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", tag))})
	}
	return parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface())
}

func (p *parquetAnswers) write(a *answer) error {
	p.row = append(p.row[:0], parquet.Int64Value(a.Row).Level(0, 0, 0))
	put := func(v parquet.Value, there bool) {
		if !there {
			v = parquet.NullValue().Level(0, 0, len(p.row))
		} else {
			v = v.Level(0, 1, len(p.row))
		}
		p.row = append(p.row, v)
	}
	text := func(s string) parquet.Value { return parquet.ByteArrayValue([]byte(s)) }
	if a.ID != nil {
		put(text(*a.ID), true)
	} else {
		put(parquet.Value{}, false)
	}
	for k := range p.places {
		there, l := k < len(a.Labels), named{}
		if there {
			l = a.Labels[k]
		}
		put(text(l.Label), there)
		put(parquet.DoubleValue(l.Score), there)
		put(text(l.Path), there)
	}
	_, err := p.to.WriteRows([]parquet.Row{p.row})
	return err
}

func (p *parquetAnswers) flush() error { return nil }
func (p *parquetAnswers) close() error { return p.to.Close() }

// Paths returns the path to each node in the user's hierarchy, as joined names. A label that is a
// path represents itself, and so does a class outside the hierarchy.
func Paths(m *model.Model) []string {
	out := make([]string, m.Tree.Len())
	separator := " > "
	if m.Data.Table != nil && m.Data.Table.PathSeparator != "" {
		separator = ""
	}
	node, above := map[string]uint32{}, map[uint32]uint32{}
	if m.Structure != nil {
		for n, name := range m.Structure.Names {
			node[name] = uint32(n)
		}
		for e, child := range m.Structure.Children {
			if _, has := above[child]; !has {
				above[child] = m.Structure.Parents[e]
			}
		}
	}
	for n := range out {
		out[n] = m.NodeName(n)
		at, inside := node[out[n]]
		for inside && separator != "" {
			if at, inside = above[at]; inside {
				out[n] = m.Structure.Names[at] + separator + out[n]
			}
		}
	}
	return out
}
