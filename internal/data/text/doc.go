// Package text turns a text into terms: the words of Unicode's word boundaries, their stems, and
// the n-grams of their characters. A term is what becomes a feature; docs/formats.md has the steps
// one by one, and testdata/vectors.json has examples that another program can check itself by.
//
//	text --words.go--> words --normal.go--> NFKC, case folded --a block each--> terms
//
// Each kind of term is defined in one file, which registers it in its init function: words.go,
// stems.go, chars.go.
package text
