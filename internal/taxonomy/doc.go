// Package taxonomy reads and checks class structures and turns them into the tree
// that is trained.
//
// A Structure is what the user gave: names and edges in file order (Read, or made from
// a message; Check and Build refuse what is broken). Build makes the training Tree from it
// and the data's labels: spawned leaves, pruning, virtual root, depth-first numbering
// (methods.md section 0). Whoever calls Build with equal arguments gets equal numbers, so
// coordinator and workers agree on nodes without sending a tree. A Closure answers what
// measures ask about the structure itself: levels, ancestors, distances, also on DAGs.
//
// Nothing here recurses or depends on the order of a map; all is linear in nodes and edges.
package taxonomy
