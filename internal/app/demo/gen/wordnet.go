package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// synset is one noun concept: its words, its meaning, and its hypernyms.
type synset struct {
	// id is the eight-digit offset in data.noun.
	id string
	// lemmas are in order of frequency, with underscores for blanks.
	lemmas []string
	// gloss is the definition, followed by examples.
	gloss string
	// hypernyms are ids, in the order of the file.
	hypernyms []string
	// instance reports that the synset is a named individual ("Noah's Ark") and not a class.
	instance bool
}

// nouns is the content of WordNet's noun file.
type nouns struct {
	notice string
	byID   map[string]*synset
	// order lists the synsets in the order of the file.
	order []*synset
}

// readNouns parses data.noun, whose format is documented in WordNet's wndb(5WN).
func readNouns(r io.Reader) (*nouns, error) {
	n := &nouns{byID: map[string]*synset{}}
	var notice strings.Builder
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for line := 1; in.Scan(); line++ {
		if text, ok := strings.CutPrefix(in.Text(), "  "); ok {
			_, text, _ = strings.Cut(text, " ") // the header numbers its lines
			notice.WriteString(strings.TrimSpace(text) + "\n")
			continue
		}
		s, err := parseSynset(in.Text())
		if err != nil {
			return nil, fmt.Errorf("data.noun:%d: %w", line, err)
		}
		n.byID[s.id] = s
		n.order = append(n.order, s)
	}
	n.notice = strings.TrimSpace(notice.String()) + "\n"
	for _, s := range n.order {
		for _, h := range s.hypernyms {
			if n.byID[h] == nil {
				return nil, fmt.Errorf("data.noun: synset %s is a kind of %s, which is not there", s.id, h)
			}
		}
	}
	return n, in.Err()
}

// parseSynset reads
// `offset file type count-hex {lemma lex}... pointers {symbol offset pos source}... | gloss`.
func parseSynset(line string) (*synset, error) {
	head, gloss, ok := strings.Cut(line, " | ")
	f := strings.Fields(head)
	if !ok || len(f) < 5 {
		return nil, fmt.Errorf("not a synset")
	}
	s := &synset{id: f[0], gloss: strings.TrimSpace(gloss)}
	words, err := strconv.ParseUint(f[3], 16, 8)
	at := 4 + 2*int(words)
	if err != nil || words == 0 || len(f) <= at {
		return nil, fmt.Errorf("bad word count %q", f[3])
	}
	for i := 4; i < at; i += 2 {
		s.lemmas = append(s.lemmas, f[i])
	}
	pointers, err := strconv.Atoi(f[at])
	if err != nil || pointers < 0 || len(f) < at+1+4*pointers {
		return nil, fmt.Errorf("bad pointer count %q", f[at])
	}
	for i := at + 1; i < at+1+4*pointers; i += 4 {
		if f[i] != "@" && f[i] != "@i" {
			continue
		}
		s.hypernyms = append(s.hypernyms, f[i+1])
		s.instance = s.instance || f[i] == "@i"
	}
	return s, nil
}
