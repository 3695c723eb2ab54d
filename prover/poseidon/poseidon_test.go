package poseidon

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
)

var arities = []int{2, 4, 8, 11}

func element(t testing.TB, littleEndian string) (e fr.Element) {
	b, err := hex.DecodeString(littleEndian)
	require.NoError(t, err)
	slices.Reverse(b)
	require.NoError(t, e.SetBytesCanonical(b))
	return e
}

// The hashes are neptune's, for all arities (testdata: reference data made with it).
func TestHashEqualsNeptune(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var vectors struct {
		Poseidon []struct {
			Arity  int
			Hash   string
			Inputs []string
		}
	}
	require.NoError(t, json.Unmarshal(data, &vectors))
	seen := map[int]int{}
	for _, v := range vectors.Poseidon {
		var inputs []fr.Element
		for _, in := range v.Inputs {
			inputs = append(inputs, element(t, in))
		}
		require.Len(t, inputs, v.Arity)
		require.Equal(t, element(t, v.Hash), Hash(inputs), "arity %d", v.Arity)
		seen[v.Arity]++
	}
	for _, arity := range arities {
		require.GreaterOrEqual(t, seen[arity], 4, "vectors of arity %d", arity)
	}
}

// Filling in the exported constants as their documentation says, with plain matrix
// products, gives the same hash and the same trace: what the circuit computes from
// them is what Hash and Trace compute with integers.
func TestConstantsDescribeTheHash(t *testing.T) {
	for _, c := range append(instancesForTrees(), Randomness()) {
		arity := c.Arity
		require.Len(t, c.CompressedRoundConstants, c.FullRounds*c.Width+c.PartialRounds)
		for range 4 {
			inputs := make([]fr.Element, arity)
			for i := range inputs {
				inputs[i].MustSetRandom()
			}
			hash, trace := byConstants(c, inputs)
			require.Equal(t, hash, c.Hash(inputs), "arity %d", arity)
			got := make([]fr.Element, c.TraceLen())
			require.Equal(t, hash, c.Trace(inputs, got))
			require.Equal(t, trace, got)
		}
	}
}

// neptune's circuit has this many constraints for a hash, one for each variable that
// it allocates (its own tests give 311, 377 and 505 for arity 2, 4 and 8).
func TestTraceLen(t *testing.T) {
	require.Equal(t, 311, For(2).TraceLen())
	require.Equal(t, 377, For(4).TraceLen())
	require.Equal(t, 505, For(8).TraceLen())
}

func instancesForTrees() (all []*Constants) {
	for _, arity := range arities {
		all = append(all, For(arity))
	}
	return all
}

// Hashes for different uses differ.
func TestDomains(t *testing.T) {
	inputs := make([]fr.Element, 2)
	require.NotEqual(t, Hash(inputs), Randomness().Hash(inputs))
}

func byConstants(c *Constants, inputs []fr.Element) (hash fr.Element, trace []fr.Element) {
	s := append([]fr.Element{c.DomainTag}, inputs...)
	keys := c.CompressedRoundConstants
	next := func() fr.Element {
		k := keys[0]
		keys = keys[1:]
		return k
	}
	for i := range s {
		k := next()
		s[i].Add(&s[i], &k)
	}
	rounds := c.FullRounds + c.PartialRounds
	for r := range rounds {
		partial := r >= c.FullRounds/2 && r < c.FullRounds/2+c.PartialRounds
		for i := range s {
			if partial && i > 0 {
				break
			}
			l := s[i]
			l2, l4 := fr.Element{}, fr.Element{}
			l2.Square(&l)
			l4.Square(&l2)
			s[i].Mul(&l4, &l)
			if r < rounds-1 {
				k := next()
				s[i].Add(&s[i], &k)
			}
			if r > 0 {
				trace = append(trace, l)
			}
			if r > 0 || i > 0 {
				trace = append(trace, l2, l4, s[i])
			}
		}
		switch {
		case partial:
			m := c.Sparse[r-c.FullRounds/2]
			out := slices.Clone(s)
			out[0].SetZero()
			var p fr.Element
			for i := range s {
				out[0].Add(&out[0], p.Mul(&m.WHat[i], &s[i]))
				if i > 0 {
					out[i].Add(&out[i], p.Mul(&m.VRest[i-1], &s[0]))
				}
			}
			s = out
		case r == c.FullRounds/2-1:
			s = matrix(c.PreSparse).apply(s)
		default:
			s = matrix(c.MDS).apply(s)
		}
	}
	return s[1], append(trace, s[1])
}

// Mixing is the MDS product times lambda also where elements are as large as they can be.
func TestMixerAtTheEdges(t *testing.T) {
	largest := fr.Element{}
	largest.SetInt64(-1)
	// The largest words, not only the largest value: Montgomery form q-1.
	words := fr.Element{q0 - 1, q1, q2, q3}
	for _, arity := range arities {
		c := For(arity)
		for _, x := range []fr.Element{{}, fr.One(), largest, words} {
			for set := range 1 << c.Width {
				var v [maxWidth]fr.Element
				for i := range c.Width {
					if set>>i&1 == 1 {
						v[i] = x
					}
				}
				want := matrix(c.MDS).apply(v[:c.Width])
				for j := range want {
					want[j].Mul(&want[j], &c.mixer.up[1])
				}
				var got [maxWidth]fr.Element
				c.mixer.mix(&got, &v, c.Width)
				require.Equal(t, want, got[:c.Width])
			}
		}
	}
}

func TestModulus(t *testing.T) {
	q := new(big.Int)
	for _, w := range []uint64{q3, q2, q1, q0} {
		q.Lsh(q, 64).Or(q, new(big.Int).SetUint64(w))
	}
	require.Zero(t, q.Cmp(fr.Modulus()))
	n := uint64(qInvNeg)
	require.Equal(t, ^uint64(0), n*q0)
}

func TestHashDoesNotAllocate(t *testing.T) {
	inputs := make([]fr.Element, 8)
	require.Zero(t, testing.AllocsPerRun(10, func() { Hash(inputs) }))
}

func BenchmarkHash(b *testing.B) {
	for _, arity := range arities {
		b.Run(fmt.Sprint(arity), func(b *testing.B) {
			inputs := make([]fr.Element, arity)
			for i := range inputs {
				inputs[i].MustSetRandom()
			}
			for b.Loop() {
				inputs[0] = Hash(inputs)
			}
		})
	}
}

// BenchmarkMul is what the cost of a hash is measured by.
func BenchmarkMul(b *testing.B) {
	var x, y fr.Element
	x.MustSetRandom()
	y.MustSetRandom()
	for b.Loop() {
		x.Mul(&x, &y)
	}
}

func BenchmarkTrace(b *testing.B) {
	c := For(8)
	inputs, trace := make([]fr.Element, 8), make([]fr.Element, c.TraceLen())
	for b.Loop() {
		inputs[0] = c.Trace(inputs, trace)
	}
}

func BenchmarkConstants(b *testing.B) {
	for b.Loop() {
		newConstants(8, 57, treeTag(8))
	}
}
