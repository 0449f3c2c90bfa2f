// Package fs opens what users name: local paths, standard input and output, and later
// remote file systems, with compression recognised by content.
package fs
