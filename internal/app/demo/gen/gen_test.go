package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a data.noun with two large enough classes, dog (below animal) and chair
// (below artifact), a small one, and an individual.
func small() string {
	var b strings.Builder
	b.WriteString("  1 Some notice.  \n  2 \n  3 Copyright by Someone.  \n")
	line := func(id, lemma string, hypernyms ...string) {
		fmt.Fprintf(&b, "%s 03 n 01 %s 0 %03d", id, lemma, len(hypernyms))
		for _, h := range hypernyms {
			symbol, of, ok := strings.Cut(h, " ")
			if !ok {
				symbol, of = "@", h
			}
			fmt.Fprintf(&b, " %s %s n 0000", symbol, of)
		}
		fmt.Fprintf(&b, " | what %s is  \n", lemma)
	}
	line("00001740", "entity")
	line("00015388", "animal", "00001740")
	line("00021939", "artifact", "00001740")
	line("00100000", "Seat", "00015388")
	line("00200000", "seat", "00021939")
	line("00300000", "tiny", "00021939")
	for i := range 10 {
		line(fmt.Sprintf("001%05d", i+1), fmt.Sprintf("beast_%d", i), "00100000")
	}
	for i := range 9 {
		line(fmt.Sprintf("002%05d", i+1), fmt.Sprintf("thing_%d", i), "00200000")
	}
	line("00200099", "both", "00200000", "00100000")
	line("00200100", "Excalibur", "@i 00200000")
	line("00300001", "tiny_thing", "00300000")
	return b.String()
}

func TestChoose(t *testing.T) {
	n, err := readNouns(strings.NewReader(small()))
	if err != nil {
		t.Fatal(err)
	}
	if want := "Some notice.\n\nCopyright by Someone.\n"; n.notice != want {
		t.Errorf("notice %q, want %q", n.notice, want)
	}
	c := choose(n)
	if got, want := string(hierarchy(c)), "entity animal\nanimal seat\nentity artifact\nartifact seat.2\n"; got != want {
		t.Errorf("hierarchy\n%swant\n%s", got, want)
	}
	if len(c.train) != 16 || len(c.test) != 4 { // 10 and 10 by first class: 2 of each
		t.Errorf("%d train and %d test documents, want 16 and 4", len(c.train), len(c.test))
	}
	all := string(instances(c, c.train)) + string(instances(c, c.test))
	if !strings.Contains(all, "seat.2,seat\tboth: what both is\n") {
		t.Errorf("a document with two classes is lost or badly written:\n%s", all)
	}
	if strings.Contains(all, "Excalibur") || strings.Contains(all, "tiny") {
		t.Errorf("an individual or a small class was not left out:\n%s", all)
	}
	if !strings.Contains(all, "seat\tbeast 3: what beast_3 is\n") {
		t.Errorf("underscores of lemmas are not blanks:\n%s", all)
	}
}

func TestGenerateIsDeterministic(t *testing.T) {
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "data.noun"), []byte(small()), 0o600); err != nil {
		t.Fatal(err)
	}
	one, two := t.TempDir(), t.TempDir()
	for _, out := range []string{one, two} {
		if err := generate(from, out); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"train.txt.gz", "test.txt.gz", "hierarchy.txt.gz", "LICENSE.wordnet"} {
		a, err := os.ReadFile(filepath.Join(one, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(two, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) {
			t.Errorf("%s differs between two runs", name)
		}
	}
}

func TestBadNouns(t *testing.T) {
	for _, line := range []string{"x", "00000001 03 n 00 | no word", "00000001 03 n zz a 0 000 | bad count",
		"00000001 03 n 01 a 0 002 @ 1 n 0000 | one pointer short", "00000001 03 n 01 a 0 -1 | negative"} {
		_, err := readNouns(strings.NewReader(line + "\n"))
		if err == nil || !strings.Contains(err.Error(), "data.noun:1: ") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := readNouns(strings.NewReader("00000001 03 n 01 a 0 001 @ 00000002 n 0000 | orphan\n")); err == nil {
		t.Error("a missing hypernym is no error")
	}
	if err := generate(t.TempDir(), t.TempDir()); err == nil {
		t.Error("a folder without data.noun is no error")
	}
}

func FuzzReadNouns(f *testing.F) {
	f.Add(small())
	f.Add("00000001 03 n 01 a 0 001 @ 00000001 n 0000 | its own kind\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := readNouns(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range n.order {
			if len(s.lemmas) == 0 || s.id == "" {
				t.Errorf("synset without a word or an id: %+v", s)
			}
		}
	})
}
