package taxonomy_test

import (
	"fmt"
	"strings"

	"taxon/internal/data/taxonomy"
)

// "animal" has a label of its own although it has children: a leaf is spawned for it. "fish" has no
// instance and is pruned; "robot" is not a class of the structure.
func ExampleBuild() {
	file := "animal bird\nanimal fish\nbird owl\nbird wren\n"
	s, _, err := taxonomy.Read(strings.NewReader(file), "animals.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	labels := []string{"owl", "animal", "robot", "wren"}
	tree, warnings, err := taxonomy.Build(s, labels, []int{5, 2, 1, 3}, taxonomy.PruneEmpty)
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := range tree.Len() {
		kind := "node"
		switch tree.Kind[n] {
		case taxonomy.Spawned:
			kind = "spawned"
		case taxonomy.Virtual:
			kind = "virtual"
		}
		if tree.Leaf[n] {
			kind += ", terminal"
		}
		fmt.Printf("%d %s%s (%s)\n", n, strings.Repeat("  ", int(tree.Depth[n])), tree.Name[n], kind)
	}
	fmt.Println(warnings[0])
	// Output:
	// 0  (virtual)
	// 1   animal (node)
	// 2     animal (spawned, terminal)
	// 3     bird (node)
	// 4       owl (node, terminal)
	// 5       wren (node, terminal)
	// 6   robot (node, terminal)
	// labels that are not in the structure, joined under a virtual root: 1 ("robot")
}
