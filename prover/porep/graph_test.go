package porep

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The block function's test vector of RFC 8439, section 2.3.2.
func TestChaCha(t *testing.T) {
	var key [32]byte
	for i := range key {
		key[i] = byte(i)
	}
	out := make([]byte, chachaBlockBytes)
	chachaBlock(20, &key, [4]uint32{1, 0x09000000, 0x4a000000, 0}, out)
	require.Equal(t, "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"+
		"d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e", hex.EncodeToString(out))
}

// Properties of every graph: parents are nodes, those in the same layer come before, the
// predecessor is among them where the version has it, and the expansion's parents are a
// permutation, so that each node is a parent eight times. (That they are the originals'
// parents, the cases show.)
func TestGraph(t *testing.T) {
	for _, variant := range []Variant{V1, V1_1, Synthetic, NonInteractive} {
		const nodes = 512
		g := newGraph(nodes, porepID(16<<10, variant), variant == V1)
		uses := make([]int, nodes)
		for node := range uint64(nodes) {
			parents := g.parents(node)
			predecessor := 0
			if variant == V1 {
				predecessor = baseDegree - 1
			}
			if node > 0 {
				require.Equal(t, node-1, parents[predecessor])
			}
			for i, parent := range parents {
				if i >= baseDegree {
					uses[parent]++
				} else if node > 0 {
					require.Less(t, parent, node)
				}
			}
		}
		for _, n := range uses {
			require.Equal(t, expansionDegree, n)
		}
	}
}

// The first version cut numbers of 32 GiB sectors to 32 bits, so that no node of the second
// half is a parent in the layer after; later ones reach all nodes (the originals' test of
// that pathology).
func TestGraphOfFirstVersion(t *testing.T) {
	const nodes = 1 << 30
	old := newGraph(nodes, porepID(32<<30, V1), true)
	rapid.Check(t, func(t *rapid.T) {
		parents := old.parents(rapid.Uint64Range(0, nodes-1).Draw(t, "node"))
		for _, parent := range parents[baseDegree:] {
			require.Less(t, parent, uint64(nodes/2))
		}
	})
	g := newGraph(nodes, porepID(32<<30, V1_1), false)
	upper := 0
	for node := range uint64(100) {
		parents := g.parents(node)
		for _, parent := range parents[baseDegree:] {
			require.Less(t, parent, uint64(nodes))
			if parent >= nodes/2 {
				upper++
			}
		}
	}
	require.InDelta(t, 400, upper, 100)
}

// Names of registered proofs and their numbers, as the proofs API counts them.
func TestRegisteredProofs(t *testing.T) {
	for name, number := range map[string]byte{
		"StackedDrg2KiBV1": 0, "StackedDrg64GiBV1": 4, "StackedDrg2KiBV1_1": 5, "StackedDrg32GiBV1_1": 8,
		"StackedDrg32GiBV1_1_Feat_SyntheticPoRep":       13,
		"StackedDrg512MiBV1_2_Feat_NonInteractivePoRep": 17,
	} {
		size, v, ok := parseRegisteredProof(name)
		require.True(t, ok)
		require.Equal(t, name, RegisteredProof(size, v))
		require.Equal(t, [32]byte{number}, porepID(size, v))
	}
	for _, name := range []string{"", "StackedDrg", "StackedDrg2KiBV2", "StackedDrg16GiBV1", "StackedDrg2KiBV1_1 "} {
		_, _, ok := parseRegisteredProof(name)
		require.False(t, ok, name)
	}
}
