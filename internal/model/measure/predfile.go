package measure

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"taxon/internal/data/textio"
	"taxon/internal/fs"
)

// Prediction is one line of a prediction file.
type Prediction struct {
	// Labels are in the order of the line.
	Labels []string
	// Scores has one score per label. It is nil unless every label has one.
	Scores []float64
}

// PredReader reads a file of predictions, which has one line per instance in the order of the data.
// Labels are separated by commas or blanks, and may have the form label:score. An empty line
// predicts nothing. In a ranking the best label comes first.
type PredReader struct {
	in        *textio.Reader
	source    string
	instances int
	known     func(label string) bool
}

// NewPredReader returns a reader of r. source is its name in errors. instances is the required
// number of lines, or -1 if unknown. A word that looks like a label with a score ("GO:0001") is one
// label if known, which may be nil, returns true for it.
func NewPredReader(r io.Reader, source string, instances int, known func(label string) bool) *PredReader {
	return &PredReader{in: textio.NewReader(r, source), source: source, instances: instances, known: known}
}

// Next returns the next line's prediction. After the last line it returns io.EOF if the number of
// lines is right. Errors are *fs.InputError, except failures of the underlying reader.
func (r *PredReader) Next() (Prediction, error) {
	text, err := r.in.Next()
	if errors.Is(err, io.EOF) {
		if r.instances >= 0 && r.in.Line() != r.instances {
			return Prediction{}, r.wrongCount(r.in.Line())
		}
		return Prediction{}, io.EOF
	}
	if err != nil {
		return Prediction{}, err
	}
	if r.instances >= 0 && r.in.Line() > r.instances {
		return Prediction{}, r.in.Errorf("more lines than the data has instances (%d)", r.instances)
	}
	return r.parse(string(text))
}

// wrongCount returns the error for a file with another number of lines.
func (r *PredReader) wrongCount(got int) error {
	return &fs.InputError{Path: r.source, Msg: fmt.Sprintf(
		"%d lines of predictions for %d instances: there must be one line an instance (an empty one for no label)", got,
		r.instances)}
}

// parse splits a line. A name in quotes is a JSON string, followed by its score up to the next
// separator.
func (r *PredReader) parse(text string) (Prediction, error) {
	var p Prediction
	for {
		if text = strings.TrimLeft(text, separators); text == "" {
			break
		}
		label, score, scored, err := "", 0.0, false, error(nil)
		if text[0] == '"' {
			name, rest, bad := textio.CutQuoted([]byte(text))
			if bad != nil {
				return Prediction{}, r.in.Errorf("%v", bad)
			}
			if len(name) == 0 {
				return Prediction{}, r.in.Errorf("a label is empty: \"\" is no name")
			}
			text = string(rest)
			word := r.word(&text)
			var stem string
			if stem, score, scored, err = r.split("x" + word); err == nil && stem != "x" {
				err = r.in.Errorf("%s behind the name %s: want a comma, a blank or :SCORE", strconv.Quote(word),
					strconv.Quote(string(name)))
			}
			label = string(name)
		} else {
			label, score, scored, err = r.split(r.word(&text))
		}
		if err != nil {
			return Prediction{}, err
		}
		p.Labels = append(p.Labels, label)
		if scored {
			p.Scores = append(p.Scores, score)
		}
	}
	if len(p.Scores) != len(p.Labels) {
		p.Scores = nil
	}
	return p, nil
}

const separators = ", \t"

// word cuts off and returns the text before the next separator.
func (r *PredReader) word(text *string) string {
	end := strings.IndexAny(*text, separators)
	if end < 0 {
		end = len(*text)
	}
	word := (*text)[:end]
	*text = (*text)[end:]
	return word
}

// split separates label and score. The score is the part after the last colon, if it is a number.
func (r *PredReader) split(word string) (label string, score float64, scored bool, err error) {
	colon := strings.LastIndexByte(word, ':')
	if colon < 0 || !looksNumeric(word[colon+1:]) || (r.known != nil && r.known(word)) {
		return word, 0, false, nil
	}
	score, err = strconv.ParseFloat(word[colon+1:], 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "", 0, false, r.in.Errorf("score %s is beyond the range of numbers", strconv.Quote(word[colon+1:]))
	case err != nil:
		return word, 0, false, nil
	case math.IsInf(score, 0) || math.IsNaN(score):
		return word, 0, false, nil
	case colon == 0:
		return "", 0, false, r.in.Errorf("score %s without a label before it", strconv.Quote(word))
	}
	return word[:colon], score, true, nil
}

// looksNumeric accepts decimal numbers only. ParseFloat would also accept "inf" and "0x1p4".
func looksNumeric(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return false
		}
	}
	return s != ""
}
