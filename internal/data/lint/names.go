package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// sameName finds labels that are the same name with different code points, and shows the
// difference.
type sameName struct {
	fold cases.Caser
	near map[string]string // normalised label -> its first spelling
}

func newSameName() *sameName { return &sameName{cases.Fold(), map[string]string{}} }

// of returns the earlier label that has the same name, or "" if there is none.
func (s *sameName) of(label string) string {
	name := norm.NFKC.String(s.fold.String(norm.NFKC.String(label)))
	name = strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) { // zero-width and other format characters are ignored
			return -1
		}
		return c
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	other, ok := s.near[name]
	if !ok {
		s.near[name] = label
	}
	return other
}

// differ shows two labels with the code points in which they differ.
func differ(a, b string) string {
	x, y := []rune(a), []rune(b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return fmt.Sprintf("%s ~ %s (%s, %s)", shown(a), shown(b), points(x), points(y))
}

// shown returns the label, which is quoted if it contains invisible characters.
func shown(label string) string {
	if strings.TrimSpace(label) == label && !strings.ContainsFunc(label,
		func(c rune) bool { return !unicode.IsPrint(c) }) {
		return label
	}
	return strconv.Quote(label)
}

// points lists code points, in the form U+0065 U+0301, up to a limit.
func points(text []rune) string {
	const most = 6
	if len(text) == 0 {
		return "nothing"
	}
	var out []string
	for _, c := range text[:min(len(text), most)] {
		out = append(out, fmt.Sprintf("%U", c))
	}
	if len(text) > most {
		out = append(out, "...")
	}
	return strings.Join(out, " ")
}

// nearDuplicate returns an earlier label that differs by at most one letter, ignoring blanks, case
// and punctuation, or "" if there is none. Labels with digits and short labels are not compared,
// because they usually differ on purpose.
func nearDuplicate(near map[string]string, label string) string {
	folded := []rune(strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, label))
	keys := []string{string(folded)}
	if len(folded) >= 6 && !slices.ContainsFunc(folded, unicode.IsDigit) {
		for i := range folded {
			keys = append(keys, string(folded[:i])+string(folded[i+1:]), string(folded[:i])+"\x00"+string(folded[i+1:]))
		}
	}
	found := ""
	for _, k := range keys {
		if other, ok := near[k]; ok && found == "" {
			found = other
		}
	}
	for _, k := range keys {
		if _, ok := near[k]; !ok && len(folded) > 0 {
			near[k] = label
		}
	}
	return found
}
