package taxonomy

import (
	"fmt"
	"strings"
)

// OfPaths makes the hierarchy of labels that are paths. A node's name is its path from the top,
// with its parts joined by the separator. Nodes are in the order in which labels mention them.
func OfPaths(labels []string, separator string) (*Structure, error) {
	s := &Structure{}
	node := map[string]uint32{}
	var put func(name string) uint32
	put = func(name string) uint32 {
		if n, ok := node[name]; ok {
			return n
		}
		parent, inner := uint32(0), strings.LastIndex(name, separator)
		if inner > 0 {
			parent = put(name[:inner])
		}
		n := uint32(len(s.Names))
		s.Names, node[name] = append(s.Names, name), n
		if inner > 0 {
			s.Parents, s.Children = append(s.Parents, parent), append(s.Children, n)
		}
		return n
	}
	for _, label := range labels {
		put(label)
	}
	if len(s.Parents) == 0 {
		return nil, fmt.Errorf("no label is a path: none of the %d holds %q", len(labels), separator)
	}
	return s, nil
}
