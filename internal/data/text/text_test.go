package text

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/vectors.json anew")

// terms returns the terms of a text in the order of their first appearance.
func terms(o Options, text string) (out []string) {
	New(o, nil).Each([]byte(text), func(w *Word) { out = append(out, w.Terms...) })
	return out
}

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		o    Options
		text string
		want string // joined by |
	}{
		{Options{}, "The cat's 3.14 U.S.A. state-of-the-art foo_bar _ , a:b",
			"the|cat's|3.14|u.s.a|state|of|the|art|foo_bar|a:b"},
		{Options{}, "हिन्दी में लिखा", "हिन्दी|में|लिखा"}, // marks belong to their word
		{Options{}, "Straße ＡＢＣ ﬁne İ", "strasse|abc|fine|i̇"},
		{Options{}, "東京都 に ラーメン", "東京|京都|に|ラー|ーメ|メン"},
		{Options{}, "กินข้าว", "กิน|นข้|ข้า|าว"},
		{Options{Ngrams: 2}, "one two three", "one|two|one two|three|two three"},
		{Options{Features: "chars"}, "ab cdef", "# ab|#ab |# ab |# cd|#cde|#def|#ef |# cde|#cdef|#def |# cdef|#cdef "},
		{Options{Features: "stems", Languages: "fi"}, "kirjastoissa kirjastot", "~kirjasto|~kirjasto"},
		{Options{Features: "stems", Languages: "en,de", Ngrams: 2}, "running houses", "~run|~running|~hous|~run hous"},
		{Options{Features: "words+chars", Chars: Range{3, 3}}, "it", "it|# it|#it "},
	} {
		if err := c.o.Check(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(terms(c.o, c.text), "|"); got != c.want {
			t.Errorf("%+v, %q: %q, want %q", c.o, c.text, got, c.want)
		}
	}
}

// everything takes all kinds of terms.
var everything = Options{Features: strings.Join(Kinds(), "+"), Languages: "fi,en", Ngrams: 2}

// Composed and decomposed text give the same terms; so does a text cut at its blanks.
func checkText(t *testing.T, s string) {
	want := terms(everything, s)
	for _, form := range []norm.Form{norm.NFC, norm.NFD} {
		if got := terms(everything, form.String(s)); !slices.Equal(got, want) {
			t.Fatalf("%q in another form: %q, not %q", s, got, want)
		}
	}
	plain := everything
	plain.Ngrams = 1
	var cut []string
	for _, piece := range strings.Split(s, " ") {
		cut = append(cut, terms(plain, piece)...)
	}
	if want := terms(plain, s); !slices.Equal(cut, want) {
		t.Fatalf("%q in pieces: %q, not %q", s, cut, want)
	}
	for _, term := range want {
		if strings.ContainsAny(term, "\t\n\r") || term == "" {
			t.Fatalf("%q has the term %q", s, term)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"Tiếng Việt có dấu", "हिन्दी में",
		"l'été 3,5 a.b c'd:e _x", "東京ｶﾞﾊﾟ Thai ก็ดี", "한국어 텍스트", "½ ① ﷺ",
		"👩‍👩‍👧 flag 🇫🇮 a\u200db", "\u0301\u0301x", "Å Å Ω"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s = strings.ToValidUTF8(s, ""); len(s) < 1000 {
			checkText(t, s)
		}
	})
}

// FuzzASCII: the quick way for ASCII finds the library's boundaries.
func FuzzASCII(f *testing.F) {
	for _, s := range []string{"a.b.c 1,2;3.4 a:b c'd 'e' _f_ g_1.5 a.1 1.a ..", "can't won't 3.x x.3 http://a.b/c?d=e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.Map(func(r rune) rune { return r & 0x7f }, s)
		var got, want []string
		(&splitter{}).each([]byte(s), func(w []byte, _ bool) { got = append(got, string(w)) })
		for it := words.FromString(s); it.Next(); {
			if strings.ContainsFunc(it.Value(), func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
				want = append(want, it.Value())
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", s, got, want)
		}
	})
}

// vector is an example for other programs.
type vector struct {
	Options
	Text  string   `json:"text"`
	Terms []string `json:"terms"`
}

func TestVectors(t *testing.T) {
	var vectors []vector
	for _, s := range []string{"The cat's 3.14 state-of-the-art foo_bar", "Tiếng Việt", "Straße, ÉTÉ",
		"हिन्दी में लिखा", "東京都 ラーメン",
		"กินข้าว", "Kirjastoissa on kirjoja"} {
		for _, o := range []Options{{}, {Features: "chars"}, {Features: "words+stems", Languages: "fi", Ngrams: 2}} {
			vectors = append(vectors, vector{o, s, terms(o, s)})
		}
	}
	got, err := json.MarshalIndent(vectors, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *rewrite {
		if err := os.WriteFile("testdata/vectors.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/vectors.json")
	if err != nil || string(got) != string(want) {
		t.Errorf("testdata/vectors.json: %v, or other terms: go test ./internal/data/text -run Vectors -rewrite", err)
	}
}

// The memory of words is forgotten when it is full, which changes no term.
func TestMemo(t *testing.T) {
	a := New(everything, nil)
	want := terms(everything, "one two")
	for range 3 {
		a.taken = memoBytes
		var got []string
		a.Each([]byte("one two"), func(w *Word) { got = append(got, w.Terms...) })
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func BenchmarkAnalyse(b *testing.B) {
	text := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog, and 3.14 cats in "+
		"state-of-the-art houses see it. ", 20))
	for name, o := range map[string]Options{"words": {}, "chars": {Features: "chars"}, "all": everything} {
		b.Run(name, func(b *testing.B) {
			a := New(o, nil)
			b.SetBytes(int64(len(text)))
			n := 0
			for range b.N {
				a.Each(text, func(w *Word) { n += len(w.Terms) })
			}
		})
	}
}
