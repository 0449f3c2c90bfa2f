package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"taxon/internal/data/textio"
)

// roots lists the synsets whose subtrees make up the demo. They are about things that everybody
// knows.
var roots = []string{
	"00015388", // animal
	"00021265", // food, nutrient
	"00021939", // artifact
	"07555863", // food, solid food
}

// minDocuments is the size below which a class is omitted: smaller classes have too few test
// documents. With 8 documents, at least 6 are for training.
const minDocuments = 8

// testShare is the ratio of documents to test documents in each class.
const testShare = 5

// document is a synset that is a hyponym of one or more classes.
type document struct {
	*synset
	// classes are the ids of its classes.
	classes []string
}

// choice is the content of the demo.
type choice struct {
	*nouns
	// train and test are in the order of data.noun.
	train, test []document
	// nodes are the ids of the classes and all their ancestors, parents first.
	nodes []string
	// name maps an id to a label.
	name map[string]string
}

// choose selects the documents and classes of the demo.
func choose(n *nouns) *choice {
	c := &choice{nouns: n}
	docs := keepLarge(documents(n))
	c.train, c.test = split(docs)
	c.nodes = closure(n, docs)
	c.name = names(n, c.nodes)
	return c
}

// documents returns the synsets below a root, except instances. Each is labelled with its direct
// hypernyms, as far as they are below a root too.
func documents(n *nouns) []document {
	inside := map[string]bool{}
	for _, id := range roots {
		inside[id] = n.byID[id] != nil
	}
	below := func(s *synset) bool {
		var seen []string
		for !inside[s.id] {
			seen = append(seen, s.id)
			if len(s.hypernyms) == 0 || len(seen) > len(n.order) {
				return false
			}
			s = n.byID[s.hypernyms[0]]
		}
		for _, id := range seen {
			inside[id] = true
		}
		return true
	}
	var docs []document
	for _, s := range n.order {
		if s.instance || slices.Contains(roots, s.id) || !below(s) {
			continue
		}
		d := document{synset: s}
		for _, h := range s.hypernyms {
			if below(n.byID[h]) && !slices.Contains(d.classes, h) {
				d.classes = append(d.classes, h)
			}
		}
		docs = append(docs, d)
	}
	return docs
}

// keepLarge drops classes with fewer than minDocuments documents, and documents left without a
// class.
func keepLarge(docs []document) []document {
	size := map[string]int{}
	for _, d := range docs {
		for _, c := range d.classes {
			size[c]++
		}
	}
	var kept []document
	for _, d := range docs {
		d.classes = slices.DeleteFunc(slices.Clone(d.classes), func(c string) bool { return size[c] < minDocuments })
		if len(d.classes) > 0 {
			kept = append(kept, d)
		}
	}
	return kept
}

// split selects one document in testShare of each first class for the test. It selects the
// documents whose ids have the smallest hashes, so that the split does not depend on the order of
// the file. Every class keeps at least one training document.
func split(docs []document) (train, test []document) {
	type ranked struct {
		hash [sha256.Size]byte
		doc  int
	}
	classes := map[string][]ranked{}
	left := map[string]int{} // training documents of a class
	for i, d := range docs {
		classes[d.classes[0]] = append(classes[d.classes[0]], ranked{sha256.Sum256([]byte(d.id)), i})
		for _, c := range d.classes {
			left[c]++
		}
	}
	chosen := map[int]bool{}
	for _, members := range classes {
		slices.SortFunc(members, func(a, b ranked) int { return bytes.Compare(a.hash[:], b.hash[:]) })
		for _, m := range members[:(len(members)+2)/testShare] {
			chosen[m.doc] = true
		}
	}
	for i, d := range docs { // in file order, because the map above has no order
		spare := chosen[i]
		for _, c := range d.classes {
			spare = spare && left[c] > 1
		}
		if !spare {
			train = append(train, d)
			continue
		}
		for _, c := range d.classes {
			left[c]--
		}
		test = append(test, d)
	}
	return train, test
}

// closure lists the classes of docs and all their ancestors along first hypernyms, in depth-first
// preorder, children in the order of data.noun.
func closure(n *nouns, docs []document) []string {
	in := map[string]bool{}
	for _, d := range docs {
		for _, c := range d.classes {
			for id := c; !in[id]; {
				in[id] = true
				s := n.byID[id]
				if len(s.hypernyms) == 0 {
					break
				}
				id = s.hypernyms[0]
			}
		}
	}
	children := map[string][]string{}
	for _, s := range n.order {
		if in[s.id] {
			parent := ""
			if len(s.hypernyms) > 0 {
				parent = s.hypernyms[0]
			}
			children[parent] = append(children[parent], s.id)
		}
	}
	var nodes []string
	var walk func(id string)
	walk = func(id string) {
		nodes = append(nodes, id)
		for _, c := range children[id] {
			walk(c)
		}
	}
	for _, id := range children[""] {
		walk(id)
	}
	return nodes
}

// names returns the label of each node: its first lemma, with .2, .3 ... for later nodes of the
// same lemma.
func names(n *nouns, nodes []string) map[string]string {
	used, name := map[string]int{}, map[string]string{}
	for _, id := range nodes {
		lemma := strings.ReplaceAll(strings.ToLower(n.byID[id].lemmas[0]), ",", "_")
		used[lemma]++
		if used[lemma] > 1 {
			lemma = fmt.Sprintf("%s.%d", lemma, used[lemma])
		}
		name[id] = lemma
	}
	return name
}

// instances returns documents in the text format: `label[,label]<TAB>words: gloss`.
func instances(c *choice, docs []document) []byte {
	var b bytes.Buffer
	for _, d := range docs {
		for i, class := range d.classes {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(c.name[class])
		}
		lemmas := strings.ReplaceAll(strings.Join(d.lemmas, ", "), "_", " ")
		fmt.Fprintf(&b, "\t%s: %s\n", lemmas, d.gloss)
	}
	return b.Bytes()
}

// hierarchy returns the edges as lines `parent child`, parents first.
func hierarchy(c *choice) []byte {
	var b bytes.Buffer
	for _, id := range c.nodes {
		if h := c.byID[id].hypernyms; len(h) > 0 {
			fmt.Fprintf(&b, "%s %s\n", textio.AppendName(nil, c.name[h[0]]), textio.AppendName(nil, c.name[id]))
		}
	}
	return b.Bytes()
}
