package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The results are kept in a JSON file next to the document, so that measuring one case keeps the
// results of the others.
const (
	document = "docs/performance.md"
	record   = "docs/performance.json"
	begin    = "<!-- versus: begin; go run ./test/bench/versus -write fills this in -->\n"
	end      = "<!-- versus: end -->\n"
)

func figure(c claim, v float64) string {
	if c.unit() == "x" {
		return fmt.Sprintf("%.3g x", v)
	}
	return fmt.Sprintf("%.0f %s", v, c.unit())
}

func goals(c claim) string {
	if c.goal == 0 {
		return ""
	}
	sign := ">="
	if c.less() {
		sign = "<="
	}
	text := fmt.Sprintf("; goal %s %s", sign, figure(c, c.goal))
	if c.reach != 0 {
		text += ", stretch " + figure(c, c.reach)
	}
	return text
}

// verdict says whether the median reaches the goals.
func verdict(c claim, median float64) string {
	reaches := func(goal float64) bool { return c.less() && median <= goal || !c.less() && median >= goal }
	switch {
	case c.goal == 0:
		return ""
	case c.reach != 0 && reaches(c.reach):
		return "stretch"
	case reaches(c.goal):
		return "goal"
	}
	return "not yet"
}

// writeDocument merges results into the record and renders the table.
func writeDocument(results []*result) error {
	known := map[string]*result{}
	if old, err := os.ReadFile(record); err == nil {
		var all []*result
		if err := json.Unmarshal(old, &all); err != nil {
			return fmt.Errorf("%s: %w", record, err)
		}
		for _, r := range all {
			known[r.Case] = r
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, r := range results {
		known[r.Case] = r
	}
	var all []*result
	for _, c := range claims() {
		if r := known[c.name]; r != nil {
			all = append(all, r)
		}
	}
	if err := writeJSON(record, all); err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	out, err := insert(string(text), table(all))
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(out), 0o644)
}

// insert replaces the text between the markers.
func insert(text, fresh string) (string, error) {
	head, rest, ok := strings.Cut(text, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("%s has lost its markers %q and %q", document, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return head + begin + fresh + end + tail, nil
}

func table(all []*result) string {
	var b strings.Builder
	b.WriteString("| case | what | median | least .. most | runs | goal; stretch | | note | of |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	by := map[string]claim{}
	for _, c := range claims() {
		by[c.name] = c
	}
	for _, r := range all {
		c := by[r.Case]
		aim := ""
		if c.goal != 0 {
			aim = figure(c, c.goal)
			if c.reach != 0 {
				aim += "; " + figure(c, c.reach)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s .. %s | %d | %s | %s | %s | %s, %s |\n", r.Case, c.meaning(),
			figure(c, r.Median),
			figure(c, r.Min), figure(c, r.Max), len(r.Figures), aim, verdict(c, r.Median), r.Note, r.Date, r.Commit)
	}
	return b.String()
}
