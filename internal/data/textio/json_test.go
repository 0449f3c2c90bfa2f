package textio

import (
	"strings"
	"testing"
)

// TestCheckJSON checks that unpaired surrogates are refused wherever they occur, and that pairs,
// and backslashes before a u, are accepted.
func TestCheckJSON(t *testing.T) {
	for _, good := range []string{``, `"a"`, `"\\ud800"`, `"\ud83d\ude00"`, `"\u00e9"`, `"\"\\"`,
		`{"a":"\uDBFF\uDFFFx"}`} {
		if err := CheckJSON([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{`"\ud800"`, `"\udc00"`, `"\ud800\ud800"`, `"\ude00\ud83d"`, `"\ud800\n"`,
		`"\ud83d\ude00\ud83d"`, `{"\\\udfff":1}`, `"\uD800x"`} {
		if err := CheckJSON([]byte(bad)); err == nil || !strings.Contains(err.Error(), "half of a surrogate pair") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := CheckJSON([]byte("\"\xff\"")); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("%v", err)
	}
	if _, _, err := CutName([]byte(`"a\ud800" b`)); err == nil || !strings.Contains(err.Error(), "surrogate") {
		t.Errorf("a name: %v", err)
	}
}
