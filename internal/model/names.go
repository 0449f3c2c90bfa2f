package model

import (
	"taxon/internal/data/taxonomy"
	textlines "taxon/internal/data/textio"
	"taxon/internal/model/form"
)

// NodeName returns the name of node n in errors and exports. It is "-" for the virtual root.
func (m *Model) NodeName(n int) string {
	if m.Tree.Kind[n] == taxonomy.Virtual {
		return "-"
	}
	return m.Tree.Name[n]
}

// NodeKind returns the word for node n's kind: node, spawned, virtual or dummy.
func (m *Model) NodeKind(n int) string {
	kind, _ := kindName(m.Tree.Kind[n])
	return kind
}

// LineName returns the node's name as it is written in lines of text: see textio.AppendName.
func (m *Model) LineName(n int) string {
	if m.Tree.Kind[n] == taxonomy.Dummy { // its name was escaped when the tree was made
		return m.NodeName(n)
	}
	return string(textlines.AppendName(nil, m.NodeName(n)))
}

// VectorName returns the kind and the name of node n under which exports list its weights. With
// descent the kind is "edge" and the name PARENT,CHILD, where PARENT is - above a root. LineName
// gives the names of an edge.
func (m *Model) VectorName(n int) (kind, name string) {
	kind, name = m.NodeKind(n), m.NodeName(n)
	if m.Form.Predictor != form.Descent {
		return kind, name
	}
	if p := m.Tree.Parent[n]; p >= 0 {
		return "edge", m.LineName(int(p)) + "," + m.LineName(n)
	}
	return "edge", "-," + m.LineName(n)
}
