package release

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	version = "v1.4.0"
	defer func() { version = "" }()
	for words, want := range map[string]string{"": "", Words(): "", "1": "", "1 v0.9.0": "",
		"2 v2.0.0": "taxon v2.0.0, which speaks 2", "x": "which speaks x", "10 v1.4.0": "it is taxon v1.4.0, which " +
			"speaks cluster protocol 1"} {
		if err := Check(words); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", words, err, want)
		}
	}
}
