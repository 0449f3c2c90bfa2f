package table

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"taxon/internal/data/textio"
)

// jsonRecords reads one JSON object per line.
type jsonRecords struct {
	in     *textio.Reader
	number map[string]int // number of each wanted column, by name
	names  []string
	seen   []bool // by column: whether some record has it
	row    map[string]json.RawMessage
	all    map[string]bool // keys of the first records, for messages
}

func openJSON(r io.Reader, source string) (*jsonRecords, *bufio.Reader) {
	start := bufio.NewReaderSize(r, bufferBytes)
	// textio.NewReader uses start's buffer
	return &jsonRecords{in: textio.NewReader(start, source), number: map[string]int{}, all: map[string]bool{}}, start
}

func (j *jsonRecords) next() (line int64, err error) {
	for {
		b, err := j.in.Next()
		line = int64(j.in.Line())
		if errors.Is(err, io.EOF) {
			return line, err
		}
		switch {
		case errors.Is(err, textio.ErrNoText):
			return line, &brokenRow{line: line, err: err}
		case err != nil:
			return line, err
		}
		if b = bytes.TrimSpace(b); len(b) == 0 {
			continue
		}
		clear(j.row)
		if err := textio.CheckJSON(b); err != nil {
			return line, &brokenRow{line: line, err: err}
		}
		if err := json.Unmarshal(b, &j.row); err != nil {
			var kind *json.UnmarshalTypeError
			var cut *json.SyntaxError
			switch {
			case line == 1 && (b[0] == '[' || b[0] == '{' && errors.As(err, &cut) && cut.Offset == int64(len(b))):
				err = errors.New("is one JSON document over several lines, or a list: want an object a line (jq " +
					"-c '.[]' FILE, or pandas' to_json(orient=\"records\", lines=True))")
			case errors.As(err, &kind) || b[0] != '{':
				err = errors.New("is no JSON object: want an object {\"column\": value, ...} a line")
			}
			return line, &brokenRow{line: line, err: err}
		}
		if j.row == nil {
			return line, &brokenRow{line: line, err: errors.New("is null: want an object a line")}
		}
		if colons(b) > len(j.row) {
			if name := j.twice(b); name != "" {
				return line, &brokenRow{line: line, err: fmt.Errorf("column %q occurs twice: leave out one of them", name)}
			}
		}
		for k, name := range j.names {
			if _, ok := j.row[name]; ok {
				j.seen[k] = true
			}
		}
		if line <= 100 {
			for name := range j.row {
				j.all[name] = true
			}
		}
		return line, nil
	}
}

// colons counts the keys of a JSON object.
func colons(object []byte) (n int) {
	depth, quoted := 0, false
	for i := 0; i < len(object); i++ {
		switch c := object[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ':' && depth == 1:
			n++
		}
	}
	return n
}

// twice returns a column that a JSON object has twice, or "" if each wanted column occurs at most
// once.
func (j *jsonRecords) twice(object []byte) string {
	d := json.NewDecoder(bytes.NewReader(object))
	_, err := d.Token() // the brace
	for seen := map[string]bool{}; err == nil && d.More(); {
		var key json.Token
		var skipped json.RawMessage
		if key, err = d.Token(); err == nil {
			err = d.Decode(&skipped)
		}
		name, _ := key.(string)
		if _, used := j.number[name]; used && seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

func (j *jsonRecords) find(name string) int {
	k, ok := j.number[name]
	if !ok {
		k = len(j.names)
		j.number[name], j.names, j.seen = k, append(j.names, name), append(j.seen, false)
	}
	return k
}

func (j *jsonRecords) columns() []string { return nil }
func (j *jsonRecords) keys() []string    { return slices.Sorted(maps.Keys(j.all)) }
func (j *jsonRecords) close()            {}

func (j *jsonRecords) texts(column int, dst []string) ([]string, error) {
	return j.appendTexts(j.names[column], j.row[j.names[column]], dst)
}

func (j *jsonRecords) appendTexts(name string, raw json.RawMessage, dst []string) ([]string, error) {
	if len(raw) == 0 {
		return dst, nil
	}
	switch raw[0] {
	case 'n': // null
		return dst, nil
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return dst, fmt.Errorf("column %q: %w", name, err)
		}
		if s != "" {
			dst = append(dst, s)
		}
		return dst, nil
	case '[':
		var list []json.RawMessage
		err := json.Unmarshal(raw, &list)
		for _, one := range list {
			if err == nil && one[0] == '[' {
				err = fmt.Errorf("column %q holds lists of lists: want a text, a number or a list of them", name)
			}
			if err == nil {
				dst, err = j.appendTexts(name, one, dst)
			}
		}
		return dst, err
	case '{':
		return dst, fmt.Errorf("column %q holds an object: want a text, a number or a list of them", name)
	}
	return append(dst, string(raw)), nil
}

func (j *jsonRecords) numbers(column int, dst []float64) (_ []float64, list bool, err error) {
	raw := j.row[j.names[column]]
	if len(raw) == 0 || raw[0] == 'n' {
		return append(dst, math.NaN()), false, nil
	}
	if raw[0] != '[' {
		v, err := jsonNumber(raw)
		return append(dst, v), false, err
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return dst, true, err
	}
	for _, one := range entries {
		v, err := jsonNumber(one)
		if err != nil {
			return dst, true, err
		}
		dst = append(dst, v)
	}
	return dst, true, nil
}

// jsonNumber parses a number, or a string as a cell of CSV is parsed.
func jsonNumber(raw json.RawMessage) (v float64, err error) {
	s := string(raw)
	switch raw[0] {
	case '[', '{':
		return 0, errors.New("want a number or a list of numbers")
	case '"':
		err = json.Unmarshal(raw, &s)
	}
	if err == nil {
		v, err = parseNumber(s)
	}
	return v, err
}
