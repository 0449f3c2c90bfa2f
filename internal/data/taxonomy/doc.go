// Package taxonomy reads and checks class structures, and turns them into the tree or graph that
// is trained.
//
// A Structure is what the user gave: names and edges in file order (Read, or from a message;
// Check and Build refuse what is broken). Build makes from it and the data's labels the training
// Tree: spawned leaves, pruning, virtual root, depth-first numbering (docs/methods.md). Equal
// arguments give equal numbers. So coordinator and workers agree on nodes without sending a tree.
// A Closure answers the measures' questions about the structure itself: levels, ancestors,
// distances, also in DAGs.
//
// Nothing here recurses or depends on the order of a map. Everything is linear in nodes and
// edges.
package taxonomy
