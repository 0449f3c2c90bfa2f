// Package taxonomy reads and checks class structures, and turns them into the tree or graph that is
// trained.
//
// A Structure holds the user's input: names and edges in file order. It comes from Read or from a
// message; Check and Build refuse an invalid one. Build turns it and the data's labels into the
// training Tree: it spawns leaves, prunes, adds a virtual root and numbers the nodes depth first
// (docs/methods.md). Equal arguments give equal numbers, so coordinator and workers agree on the
// nodes without exchanging a tree. A Closure answers queries of the evaluation measures about the
// structure itself: levels, ancestors, distances, in DAGs as well.
//
// No function recurses or depends on the order of a map. Unless it says otherwise, a function is
// linear in nodes and edges.
package taxonomy
