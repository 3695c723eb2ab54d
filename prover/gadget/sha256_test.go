package gadget

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/witness"
)

// A full block of variables costs 25,840 constraints, without those that make
// the message's bits (bellpepper's own test of sha256_compression_function).
func TestSHA256BlockCount(t *testing.T) {
	b := constraint.NewBuilder()
	var block [16]uint32Bits
	for i := range block {
		for k := range block[i] {
			block[i][k] = Is(b.AllocBit())
		}
	}
	compressBlock(b, initialState(&circuitWords{b: b}), block)
	require.Equal(t, 25840, b.Finish().NumConstraints())
}

// A constant message has a constant hash, and costs nothing.
func TestSHA256OfConstants(t *testing.T) {
	for _, message := range []string{"", "abc", "a message of more than one block, so that the state is carried on to the next"} {
		var bits []Boolean
		for _, c := range []byte(message) {
			for i := 7; i >= 0; i-- {
				bits = append(bits, map[byte]Boolean{0: False, 1: True}[c>>i&1])
			}
		}
		b := constraint.NewBuilder()
		want := sha256.Sum256([]byte(message))
		for i, bit := range SHA256(b, bits) {
			require.Equal(t, want[i/8]>>(7-i%8)&1 == 1, bit == True, "bit %d", i)
			require.True(t, bit.IsConstant())
		}
		s := b.Finish()
		require.Zero(t, s.NumConstraints()+s.NumAux())
	}
}

// Property: for every pattern of constants, variables and negations in the
// message, the witness half satisfies the constraint half, both hash as SHA-256
// does, and a flipped variable breaks a constraint.
func TestSHA256(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "words")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		b := constraint.NewBuilder()
		var bits []Boolean
		var words []Word
		var raw []byte
		var variables []bool
		for range n {
			w := Word{Value: r.Uint32()}
			switch r.IntN(3) {
			case 0:
				w.Variable = allBits
			case 1:
				w.Variable = r.Uint32()
				w.negated = w.Variable & r.Uint32()
			}
			for i := 31; i >= 0; i-- {
				bit := False
				if w.Value>>i&1 == 1 {
					bit = True
				}
				if w.Variable>>i&1 == 1 {
					negated := w.negated>>i&1 == 1
					bit = Boolean{b.AllocBit(), negated}
					variables = append(variables, (w.Value>>i&1 == 1) != negated)
				}
				bits = append(bits, bit)
			}
			words = append(words, w)
			raw = binary.BigEndian.AppendUint32(raw, w.Value)
		}
		hash := SHA256(b, bits)
		before := b.NumAux()
		for _, bit := range hash {
			b.Enforce(bit.lc(), constraint.Lin(constraint.One), constraint.Lin(b.AllocInput()))
		}
		s := b.Finish()

		w := witness.New(s.Layout())
		wr := witness.NewWriter(w, witness.Start)
		for _, v := range variables {
			wr.Bit(v)
		}
		got := WriteSHA256(wr, words)
		require.Equal(t, sha256.Sum256(raw), got)
		for i := range hash {
			var x fr.Element
			x.SetUint64(uint64(got[i/8] >> (7 - i%8) & 1))
			wr.Input(&x)
		}
		wr.Close()
		require.Equal(t, s.Layout().End(), wr.Position())
		require.NoError(t, s.Check(context.Background(), w))
		if before == 0 {
			return
		}
		i := rapid.IntRange(0, before-1).Draw(t, "flipped")
		w.Bits[i/64] ^= 1 << (i % 64)
		require.Error(t, s.Check(context.Background(), w), "variable %d", i)
	})
}

// Property: a step in a binary tree hashes the children in their order, and the
// index is the one that was taken.
func TestSHA256MerkleStep(t *testing.T) {
	b := constraint.NewBuilder()
	parent, index := SHA256MerkleStep(b, b.Alloc())
	PackInput(b, []constraint.Var{index})
	Inputize(b, parent)
	s := b.Finish()
	for at := range 2 {
		values := randomElements(2, uint64(at))
		w := witness.New(s.Layout())
		wr := witness.NewWriter(w, witness.Start)
		wr.Full(&values[0])
		got := WriteSHA256MerkleStep(wr, &values[0], at, &values[1])
		var position fr.Element
		position.SetUint64(uint64(at))
		wr.Input(&position)
		wr.Input(&got)
		wr.Close()
		require.Equal(t, s.Layout().End(), wr.Position())
		require.NoError(t, s.Check(context.Background(), w))

		var raw [2][32]byte
		fr.LittleEndian.PutElement(&raw[at], values[0])
		fr.LittleEndian.PutElement(&raw[1-at], values[1])
		require.Equal(t, HashElement(sha256.Sum256(append(raw[0][:], raw[1][:]...))), got)
		require.Equal(t, got, HashPair([]fr.Element{values[at], values[1-at]}))

		w.Inputs[1].Sub(&one, &position)
		require.Error(t, s.Check(context.Background(), w))
	}
}

func BenchmarkWriteSHA256(b *testing.B) {
	const words = 39 * 8 // a label's message
	builder := constraint.NewBuilder()
	message := make([]Word, words)
	var bits []Boolean
	for i := range message {
		message[i] = Word{Value: uint32(i) * 0x9e3779b9, Variable: allBits}
		for range 32 {
			bits = append(bits, Is(builder.AllocBit()))
		}
	}
	SHA256(builder, bits)
	w := witness.New(builder.Finish().Layout())
	b.SetBytes(4 * words)
	for b.Loop() {
		WriteSHA256(witness.NewWriter(w, witness.Start), message)
	}
}
