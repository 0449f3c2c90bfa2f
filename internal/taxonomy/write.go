package taxonomy

import (
	"taxon/internal/fs"
	"taxon/internal/lines"
)

// WriteFile writes the edges as Read reads them, a line each.
func (s *Structure) WriteFile(path string) error { return fs.WriteFile(path, s.Text()) }

// Text is what WriteFile writes.
func (s *Structure) Text() (b []byte) {
	for e, p := range s.Parents {
		b = append(lines.AppendName(b, s.Names[p]), ' ')
		b = append(lines.AppendName(b, s.Names[s.Children[e]]), '\n')
	}
	return b
}
