package mapper

import "unsafe"

// narrowLanes classes or fewer descend in float32 on a tile of their own, a quarter as large:
// that of sixteen lanes does not fit into a second-level cache of 2 MB from 32,000 features
// on, and the tile is what a visit waits for. The bits are the same. (news20, whose second
// block has four classes: a tenth less CPU time.)
const narrowLanes = 4

// narrowTile copies the tile's first lanes, where listed rows look, and has the descent run on them.
func (t *Scratch) narrowTile() {
	if t.narrow == nil { // the last line is addressed as one of the wide tile
		t.narrow = make([][narrowLanes]float32, len(t.w)+Lanes/narrowLanes-1)
	}
	if t.needsMost() {
		for f := range t.w {
			t.narrow[f] = [narrowLanes]float32(t.w[f][:narrowLanes])
		}
	} else {
		for _, f := range t.needed {
			t.narrow[f] = [narrowLanes]float32(t.w[f][:narrowLanes])
		}
	}
	e := t.sweep32
	e.w = (*[Lanes]float32)(unsafe.Pointer(&t.narrow[0]))
	e.last = (*[Lanes]float32)(unsafe.Pointer(&t.narrow[len(t.w)-1]))
	e.narrow = 1
}
