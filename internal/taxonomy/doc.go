// Package taxonomy reads and checks class structures and turns them into the tree
// that is trained: spawned leaves, pruning, virtual root, depth-first numbering.
package taxonomy
