package merkle

import (
	"fmt"
	"math/bits"
)

// NodeBytes is the size of a tree's node, and so of a leaf.
const NodeBytes = 32

// Shape is the form of a tree: BaseHeight levels of arity Base, then a level of arity Sub
// and one of arity Top where these are not 0. Arities are powers of two.
type Shape struct {
	Base, Sub, Top int
	BaseHeight     int
}

// ForSector returns the shape of the trees over a sector's replica (tree C and tree R last)
// by the sector's size in bytes. The second result is false for a size that has none.
// Source: filecoin-proofs, constants.rs, SectorShape*.
func ForSector(sectorBytes uint64) (Shape, bool) {
	shape := Shape{Base: 8}
	switch sectorBytes {
	case 2 << 10, 8 << 20, 512 << 20:
	case 4 << 10:
		shape.Sub = 2
	case 16 << 10, 32 << 30:
		shape.Sub = 8
	case 32 << 10, 64 << 30:
		shape.Sub, shape.Top = 8, 2
	default:
		return Shape{}, false
	}
	leaves := sectorBytes / NodeBytes / uint64(max(shape.Sub, 1)) / uint64(max(shape.Top, 1))
	shape.BaseHeight = log2(leaves) / log2(uint64(shape.Base))
	return shape, true
}

// Binary returns the shape of a binary tree over a power of two of leaves, such as the one
// over a sector's data (tree D).
func Binary(leaves uint64) Shape {
	return Shape{Base: 2, BaseHeight: log2(leaves)}
}

// Arities returns the arity of every level of a path, from the leaf upwards.
func (s Shape) Arities() []int {
	arities := make([]int, 0, s.BaseHeight+2)
	for range s.BaseHeight {
		arities = append(arities, s.Base)
	}
	if s.Sub > 0 {
		arities = append(arities, s.Sub)
	}
	if s.Top > 0 {
		arities = append(arities, s.Top)
	}
	return arities
}

// Leaves is the number of leaves.
func (s Shape) Leaves() uint64 {
	leaves := uint64(1)
	for _, arity := range s.Arities() {
		leaves *= uint64(arity)
	}
	return leaves
}

// String is the form in the names of parameter files: base, sub and top arity.
func (s Shape) String() string {
	return fmt.Sprintf("%d-%d-%d", s.Base, s.Sub, s.Top)
}

func log2(n uint64) int { return bits.Len64(n) - 1 }
