package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"taxon/internal/data/table"
)

// request is the body of a call. It is read value by value, because reflection would cost more than
// the scoring.
type request struct {
	room *memoryBudget
	// held is the number of bytes taken from room.
	held int64
	body []byte
	// in reads the bytes of body.
	in   bytes.Buffer
	json jsontext.Decoder
	rows jsonRows
	out  []byte
	question
}

// requests pools the memory of requests.
var requests = sync.Pool{New: func() any { return new(request) }}

// release returns the memory of the request.
func (q *request) release() {
	q.room.release(q.held)
	if q.held = 0; cap(q.body)+24*cap(q.rows)+cap(q.out) <= keptBytes+2*outputBytes {
		q.question = question{}
		requests.Put(q)
	}
}

// lenient permits duplicate names, which jsontext refuses by default: an instance in which a
// feature occurs twice is no reason to refuse the others. Strings of invalid Unicode are refused.
var lenient = jsontext.AllowDuplicateNames(true)

// jsonRows are the instances of a body.
type jsonRows [][]byte

func (r jsonRows) len() int { return len(r) }

// shape describes the fields of a body.
const shape = `the body must be {"instances": [...], "top": 5}`

// firstBytes is the size of a body's buffer before the body arrives.
const firstBytes = 4 << 10

// receive reads a body of at most `most` bytes. It acquires memory for what has arrived, not for the
// announced length.
func (q *request) receive(body io.Reader, announced, most int64) error {
	large := refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes: send fewer instances at a time",
		most)
	if announced > most {
		return large
	}
	q.body = q.body[:0]
	if err := q.hold(int64(cap(q.body))); err != nil {
		return err
	}
	for {
		if len(q.body) == cap(q.body) {
			larger := min(max(firstBytes, 2*int64(cap(q.body))), most+1)
			if err := q.hold(larger); err != nil {
				return err
			}
			was := int64(cap(q.body))
			q.body = append(make([]byte, 0, larger), q.body...)
			q.hold(-was)
		}
		n, err := body.Read(q.body[len(q.body):cap(q.body)])
		q.body = q.body[:len(q.body)+n]
		switch {
		case int64(len(q.body)) > most:
			return large
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return refuse(http.StatusBadRequest, "the body did not arrive whole")
		}
	}
}

// hold changes the memory acquired for the request to bytes.
func (q *request) hold(bytes int64) error {
	err := q.room.acquire(bytes)
	if err == nil {
		q.held += bytes
	}
	return err
}

// read reads a body of at most `most` bytes and the given number of instances. announced is its
// length, or -1 if that is unknown.
func (q *request) read(body io.Reader, announced, most int64, instances int) error {
	if err := q.receive(body, announced, most); err != nil {
		return err
	}
	q.question, q.rows = question{}, q.rows[:0]
	d := open(&q.json, &q.in, q.body)
	err := members(d, func(name string) error {
		switch name {
		case "instances":
			return q.instances(d, instances)
		case "top":
			return integer(d, name, &q.top)
		case "words":
			return integer(d, name, &q.words)
		case "label":
			return text(d, name, &q.label)
		}
		return fmt.Errorf("unknown field %q", name)
	})
	if err == nil {
		if _, err = d.ReadToken(); err == nil {
			err = errors.New("unexpected text after the object")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if own := (refusal{}); errors.As(err, &own) {
		return err
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "%s: %v", shape, err)
	}
	q.question.rows = q.rows
	return nil
}

// open starts reading text.
func open(d *jsontext.Decoder, in *bytes.Buffer, text []byte) *jsontext.Decoder {
	*in = *bytes.NewBuffer(text)
	d.Reset(in, lenient)
	return d
}

// members calls visit for each member of an object. Each visit must read the value.
func members(d *jsontext.Decoder, visit func(name string) error) error {
	return objects(d, func(name []byte) error { return visit(string(unquoted(name))) })
}

// objects does the same as members, but passes the names in their raw form.
func objects(d *jsontext.Decoder, visit func(name []byte) error) error {
	if d.PeekKind() != '{' {
		return kindError(d, "an object")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err == nil {
			err = visit(name)
		}
		if err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// kindError returns the error of a value of the wrong kind, or of a body that is not JSON.
func kindError(d *jsontext.Decoder, want string) error {
	if err := d.SkipValue(); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return fmt.Errorf("expected %s here", want)
}

// instances reads a list of instances.
func (q *request) instances(d *jsontext.Decoder, most int) error {
	q.rows = q.rows[:0]
	if d.PeekKind() != '[' {
		return kindError(d, "a list of instances")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		if len(q.rows) == most {
			return refuse(http.StatusBadRequest, "more than %d instances: send fewer at a time", most)
		}
		end := int(d.InputOffset())
		q.rows = append(q.rows, q.body[end-len(v):end])
	}
	_, err := d.ReadToken()
	return err
}

// integer reads a whole number or null.
func integer(d *jsontext.Decoder, name string, into **int) error {
	v, err := d.ReadValue()
	if err != nil || v.Kind() == 'n' {
		return err
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		return fmt.Errorf("%s %s: must be a whole number", name, v)
	}
	*into = &n
	return nil
}

// text reads a string or null.
func text(d *jsontext.Decoder, name string, into *string) error {
	v, err := d.ReadValue()
	if err != nil || v.Kind() == 'n' {
		return err
	}
	if v.Kind() != '"' {
		return fmt.Errorf("%s: must be a string", name)
	}
	*into = string(unquoted(v))
	return nil
}

// unquoted returns the text of a string that was checked before.
func unquoted(v []byte) []byte {
	b, _ := jsontext.AppendUnquote(nil, v)
	return b
}

// vector reads {"text": ...} or {"features": {"7": 0.5}}, or both if the model was trained on both.
func (r jsonRows) vector(l *loaded, i int, v *vector) error {
	d := open(&v.json, &v.in, r[i])
	v.features = v.features[:0]
	var words *string
	features := false
	err := members(d, func(name string) error {
		switch {
		case name == "text":
			words = new(string)
			return text(d, name, words)
		case name != "features":
			return fmt.Errorf("unknown field %q", name)
		}
		features = true
		return objects(d, func(name []byte) error { return v.feature(d, name, l.m.Data.Table) })
	})
	switch {
	case err != nil:
		var wrong featureError
		if errors.As(err, &wrong) {
			return err
		}
		return fmt.Errorf("an instance is {\"text\": ...} or {\"features\": {\"7\": 0.5}}, or both: %w", err)
	}
	return l.vector(words, features, v)
}

// featureError describes an invalid feature.
type featureError string

func (e featureError) Error() string { return string(e) }

// feature reads a feature. Its name is a number or a table's column. Its value is a number, a list,
// or null if it is missing.
func (v *vector) feature(d *jsontext.Decoder, name []byte, schema *table.Schema) error {
	var first uint32
	width := 0
	if schema != nil {
		first, width = schema.Column(string(unquoted(name)))
	}
	n, err := strconv.ParseUint(string(name[1:len(name)-1]), 10, 32)
	switch {
	case width > 0:
		n = uint64(first)
	case err != nil:
		return featureError(fmt.Sprintf("feature %s: must be %sa number as in the training data", name, schema.Hint()))
	}
	value, err := d.ReadValue()
	if err != nil || value.Kind() == 'n' && schema != nil {
		return err
	}
	if value.Kind() == '[' && width > 0 || width > 1 {
		var list []float64
		if err := json.Unmarshal(value, &list); err != nil || len(list) != width || slices.ContainsFunc(list, tooLarge) {
			return featureError(fmt.Sprintf("feature %s: want a list of %d numbers, finite in float32", name, width))
		}
		for k, x := range list {
			v.features = append(v.features, feature{first + uint32(k), x})
		}
		return nil
	}
	if value.Kind() != '0' {
		return featureError(fmt.Sprintf("feature %s: its value must be a number", name))
	}
	x, err := strconv.ParseFloat(string(value), 64)
	if err != nil || tooLarge(float64(schema.Standardise(uint32(n), x))) {
		return featureError(fmt.Sprintf("feature %s: %s is not finite in float32", name, value))
	}
	v.features = append(v.features, feature{uint32(n), x})
	return nil
}

// tooLarge reports whether x overflows float32.
func tooLarge(x float64) bool { return math.IsInf(float64(float32(x)), 0) }
