package merkle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/bincode"
	"github.com/interlock-prover/interlock/prover/poseidon"
	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

// Heights and arities of every sector size: filecoin-proofs, constants.rs (SectorShape*),
// and the number of a sector's 32-byte nodes.
func TestForSector(t *testing.T) {
	for _, c := range []struct {
		bytes  uint64
		name   string
		height int
	}{
		{2 << 10, "8-0-0", 2},
		{4 << 10, "8-2-0", 3},
		{16 << 10, "8-8-0", 3},
		{32 << 10, "8-8-2", 4},
		{8 << 20, "8-0-0", 6},
		{512 << 20, "8-0-0", 8},
		{32 << 30, "8-8-0", 10},
		{64 << 30, "8-8-2", 11},
	} {
		shape, ok := ForSector(c.bytes)
		require.True(t, ok)
		require.Equal(t, c.name, shape.String())
		require.Len(t, shape.Arities(), c.height)
		require.Equal(t, c.bytes/NodeBytes, shape.Leaves())
	}
	for _, bytes := range []uint64{0, 1, 1 << 10, 3 << 10, 2<<10 + 1, 1 << 63} {
		_, ok := ForSector(bytes)
		require.False(t, ok, "%d bytes", bytes)
	}
	require.Equal(t, uint64(64), Binary(64).Leaves())
}

// shapes are small trees of all three forms, and binary ones.
var shapes = []Shape{
	{Base: 8, BaseHeight: 2},
	{Base: 8, Sub: 2, BaseHeight: 1},
	{Base: 8, Sub: 8, BaseHeight: 1},
	{Base: 8, Sub: 8, Top: 2, BaseHeight: 1},
	{Base: 4, Sub: 8, Top: 2, BaseHeight: 2},
	Binary(16),
}

// prove builds the whole tree over random leaves and returns its root and a proof for each
// leaf: the definition of a Merkle tree, levels above one another.
func prove(shape Shape) (root fr.Element, proofs []Proof) {
	nodes := make([]fr.Element, shape.Leaves())
	proofs = make([]Proof, len(nodes))
	for i := range nodes {
		nodes[i].MustSetRandom()
		proofs[i].Leaf = nodes[i]
	}
	under := 1 // leaves under a node
	for _, arity := range shape.Arities() {
		for i := range proofs {
			at := i / under
			children := nodes[at/arity*arity:][:arity]
			step := Step{Index: at % arity}
			step.Siblings = append(step.Siblings, children[:step.Index]...)
			step.Siblings = append(step.Siblings, children[step.Index+1:]...)
			proofs[i].Path = append(proofs[i].Path, step)
		}
		var parents []fr.Element
		for i := 0; i < len(nodes); i += arity {
			parents = append(parents, poseidon.Hash(nodes[i:i+arity]))
		}
		nodes, under = parents, under*arity
	}
	for i := range proofs {
		proofs[i].Root = nodes[0]
	}
	return nodes[0], proofs
}

func TestProofsOfATree(t *testing.T) {
	for _, shape := range shapes {
		root, proofs := prove(shape)
		for i := range proofs {
			p := &proofs[i]
			require.Equal(t, uint64(i), p.Position())
			require.Equal(t, root, p.ComputeRoot(poseidon.Hash))
			_, err := p.Path[i%len(p.Path)].Siblings[0].SetRandom()
			require.NoError(t, err)
			require.NotEqual(t, root, p.ComputeRoot(poseidon.Hash))
		}
	}
}

// encode is the bincode form, field by field as storage-proofs-core declares them.
func encode(p *Proof, shape Shape) (out []byte) {
	element := func(e fr.Element) {
		b := e.Bytes()
		for i := range b {
			out = append(out, b[31-i])
		}
	}
	u64 := func(n int) { out = binary.LittleEndian.AppendUint64(out, uint64(n)) }
	path := func(steps []Step) {
		u64(len(steps))
		for _, s := range steps {
			u64(len(s.Siblings))
			for _, e := range s.Siblings {
				element(e)
			}
			u64(s.Index)
		}
	}
	h := shape.BaseHeight
	switch {
	case shape.Top > 0:
		out = append(out, 2, 0, 0, 0)
		path(p.Path[:h])
		path(p.Path[h : h+1])
		path(p.Path[h+1:])
	case shape.Sub > 0:
		out = append(out, 1, 0, 0, 0)
		path(p.Path[:h])
		path(p.Path[h:])
	default:
		out = append(out, 0, 0, 0, 0)
		element(p.Root)
		element(p.Leaf)
		path(p.Path)
		return out
	}
	element(p.Root)
	element(p.Leaf)
	return out
}

func read(data []byte, shape Shape) (Proof, error) {
	r := bincode.NewReader(data)
	p := Read(r, shape)
	return p, r.Finish()
}

// Property: sparse trees are those with all their leaves.
func TestSparse(t *testing.T) {
	for _, shape := range shapes {
		root, proofs := prove(shape)
		leaves := map[uint64]fr.Element{}
		for at := range proofs {
			leaves[uint64(at)] = proofs[at].Leaf
		}
		usual := proofs[0].Leaf
		delete(leaves, 0)
		tree := NewSparse(shape, usual, leaves, poseidon.Hash)
		require.Equal(t, root, tree.Root())
		for at := range proofs {
			require.Equal(t, proofs[at], tree.Prove(uint64(at)))
		}
	}
}

func TestReadBackWhatIsWritten(t *testing.T) {
	for _, shape := range shapes {
		_, proofs := prove(shape)
		for _, p := range proofs {
			require.Equal(t, encode(&p, shape), p.Append(nil, shape))
			got, err := read(encode(&p, shape), shape)
			require.NoError(t, err)
			require.Equal(t, p, got)
		}
	}
}

// A proof read for another shape, a part of one, or one with more behind it is refused by
// the name of a field; nothing is allocated by what a count says.
func TestReadRefuses(t *testing.T) {
	for i, shape := range shapes {
		_, proofs := prove(shape)
		data := encode(&proofs[1], shape)
		for n := range data {
			_, err := read(data[:n], shape)
			requireField(t, err)
		}
		_, err := read(append(data, 0), shape)
		require.ErrorContains(t, err, "follow the end")
		for j, other := range shapes {
			if i != j {
				_, err := read(data, other)
				requireField(t, err)
			}
		}
	}
}

func TestReadNamesTheField(t *testing.T) {
	shape := Shape{Base: 8, Sub: 8, Top: 2, BaseHeight: 1}
	_, proofs := prove(shape)
	good := encode(&proofs[1], shape)
	// variant, base path: count, (count, 7 hashes, index); sub path: the same; top path.
	const base = 4 + 8
	const level = 8 + 7*32 + 8
	for _, c := range []struct {
		at    int
		bytes []byte
		want  string
	}{
		{0, []byte{1}, "data: is variant 1, not 2"},
		{4, []byte{2}, "base_proof: has 2 items, not 1"},
		{4 + 7, []byte{0xff}, "base_proof: has 18374686479671623681 items, not 1"},
		{base, []byte{8}, "base_proof[0].hashes: has 8 items, not 7"},
		{base + 8 + 3*32 + 31, []byte{0x74}, "base_proof[0].hashes[3]: is not below the field's modulus"},
		{base + level - 8, []byte{8}, "base_proof[0].index: is 8 at a level of arity 8"},
		{base + level + 8 + level - 1, []byte{1}, "sub_proof[0].index: is 72057594037927936 at a level of arity 8"},
		{base + 2*(level+8) + 8 + 32, []byte{2}, "top_proof[0].index: is 2 at a level of arity 2"},
		{len(good) - 33, []byte{0xff}, "root: is not below the field's modulus"},
		{len(good) - 1, []byte{0xff}, "leaf: is not below the field's modulus"},
	} {
		data := append([]byte(nil), good...)
		copy(data[c.at:], c.bytes)
		_, err := read(data, shape)
		require.EqualError(t, err, c.want)
	}
}

func requireField(t testing.TB, err error) {
	t.Helper()
	var field *bincode.FieldError
	require.True(t, errors.As(err, &field), "%v", err)
	require.NotEmpty(t, field.Reason)
}

// Whatever is read is what would be written: there is one form of a proof.
func FuzzRead(f *testing.F) {
	for i, shape := range shapes {
		_, proofs := prove(shape)
		f.Add(i, encode(&proofs[rand.IntN(len(proofs))], shape))
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		shape := shapes[uint(i)%uint(len(shapes))]
		var p Proof
		var err error
		bounded.Allocation(t, len(data), func() { p, err = read(data, shape) })
		if err != nil {
			requireField(t, err)
			return
		}
		require.Equal(t, data, encode(&p, shape))
		p.ComputeRoot(poseidon.Hash)
	})
}

func BenchmarkComputeRoot(b *testing.B) {
	shape, _ := ForSector(32 << 30)
	p := Proof{}
	for _, arity := range shape.Arities() {
		p.Path = append(p.Path, Step{Siblings: make([]fr.Element, arity-1)})
	}
	for b.Loop() {
		p.Leaf = p.ComputeRoot(poseidon.Hash)
	}
}

func ExampleShape() {
	shape, _ := ForSector(32 << 30)
	fmt.Println(shape, shape.Arities())
	// Output: 8-8-0 [8 8 8 8 8 8 8 8 8 8]
}
