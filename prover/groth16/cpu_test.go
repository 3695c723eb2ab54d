package groth16

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/memory"
	"github.com/interlock-prover/interlock/prover/witness"
)

func random(t testing.TB, n int) []fr.Element {
	t.Helper()
	v := make(fr.Vector, n)
	require.NoError(t, v.SetRandom())
	return v
}

// The roots of unity and the coset are bellperson's: powers of the generator 7
// of the multiplicative group (blstrs: ROOT_OF_UNITY, MULTIPLICATIVE_GENERATOR).
func TestDomainIsBellpersons(t *testing.T) {
	// blstrs' ROOT_OF_UNITY of order 2^32, in Montgomery form.
	root := fr.Element{0xb9b58d8c5f0e466a, 0x5b1b4c801819d7ec, 0x0af53ae352a31e64, 0x5bf3adda19e9b27b}
	for n := 1 << 32; n >= 2; n /= 2 {
		g, err := fr.Generator(uint64(n))
		require.NoError(t, err)
		require.Equal(t, root, g, "order %d", n)
		root.Square(&root)
	}
	require.Equal(t, fr.Element{0x0000000efffffff1, 0x17e363d300189c0f, 0xff9c57876f8457b0, 0x351332208fc5a8c4}, fr.NewElement(cosetShift))
}

// naiveInterpolation returns the coefficients of the polynomial that has the
// given values on the powers of the root of unity, by the definition: O(n²).
func naiveInterpolation(t testing.TB, values []fr.Element) []fr.Element {
	n := len(values)
	w, err := fr.Generator(uint64(n))
	require.NoError(t, err)
	w.Inverse(&w)
	nInverse := fr.NewElement(uint64(n))
	nInverse.Inverse(&nInverse)
	out := make([]fr.Element, n)
	step := fr.One()
	for i := range out {
		p := fr.One()
		for j := range values {
			var x fr.Element
			x.Mul(&p, &values[j])
			out[i].Add(&out[i], &x)
			p.Mul(&p, &step)
		}
		out[i].Mul(&out[i], &nInverse)
		step.Mul(&step, &w)
	}
	return out
}

// The quotient is the polynomial division of A·B - C by x^n - 1, by the
// schoolbook; for satisfied and unsatisfied values alike.
func TestQuotientEqualsDivision(t *testing.T) {
	for n := 1; n <= 512; n *= 2 {
		for _, satisfied := range []bool{true, false} {
			a, b, c := random(t, n), random(t, n), random(t, n)
			if satisfied {
				for i := range c {
					c[i].Mul(&a[i], &b[i])
				}
			}
			pa, pb, pc := naiveInterpolation(t, a), naiveInterpolation(t, b), naiveInterpolation(t, c)
			product := make([]fr.Element, 2*n)
			for i := range pa {
				for j := range pb {
					var x fr.Element
					x.Mul(&pa[i], &pb[j])
					product[i+j].Add(&product[i+j], &x)
				}
			}
			for i := range pc {
				product[i].Sub(&product[i], &pc[i])
			}
			// Division by x^n - 1: what is above degree n, comes again n lower.
			want := make([]fr.Element, n)
			copy(want, product[n:])
			remainder := make([]fr.Element, n)
			for i := range remainder {
				remainder[i].Add(&product[i], &product[n+i])
			}
			for i := range remainder {
				require.Equal(t, satisfied, remainder[i].IsZero())
			}
			if !satisfied {
				// On the coset the division is by a constant, so a
				// remainder goes into the result: quotient + remainder/(7^n - 1).
				var z fr.Element
				one := fr.One()
				z.Exp(fr.NewElement(7), big.NewInt(int64(n)))
				z.Sub(&z, &one)
				z.Inverse(&z)
				for i := range want {
					var x fr.Element
					x.Mul(&remainder[i], &z)
					want[i].Add(&want[i], &x)
				}
			}
			require.NoError(t, newDomain(n).quotient(t.Context(), a, b, func(to []fr.Element) error { copy(to, c); return nil }, 2))
			require.Equal(t, want, a, "n = %d, satisfied: %v", n, satisfied)
		}
	}
}

// Above the block size the transforms go through stages of our own: they agree
// with Horner's rule, and going there and back changes nothing.
func TestLargeDomain(t *testing.T) {
	const n = 4 * maxBlock
	d := newDomain(n)
	values := random(t, n)
	v := append([]fr.Element(nil), values...)
	require.NoError(t, d.interpolate(t.Context(), v, 3))
	unscale := d.unscaled()
	unscale.Inverse(&unscale)
	one := fr.One()
	require.NoError(t, d.scalePowers(t.Context(), v, &one, &unscale, 3))

	natural := append([]fr.Element(nil), v...)
	require.NoError(t, permute(t.Context(), natural, 3))
	w, err := fr.Generator(n)
	require.NoError(t, err)
	shift := fr.NewElement(cosetShift)
	require.NoError(t, d.scalePowers(t.Context(), v, &shift, &one, 3))
	require.NoError(t, d.evaluate(t.Context(), v, 3))
	horner := func(x fr.Element) (y fr.Element) {
		for i := n - 1; i >= 0; i-- {
			y.Mul(&y, &x)
			y.Add(&y, &natural[i])
		}
		return y
	}
	for _, i := range []int{0, 1, 12345, maxBlock, n - 1} {
		var x fr.Element
		x.Exp(w, big.NewInt(int64(i)))
		require.Equal(t, horner(x), values[i], "value %d", i)
		x.Mul(&x, &shift)
		require.Equal(t, horner(x), v[i], "value %d on the coset", i)
	}
}

// testCircuit has every kind of variable: inputs in A and B, bits and full
// elements, in A only, in B only, in both and in C only.
//
//	n bits with b·(1-b) = 0, packed: Σ 2^i·b_i = packed
//	packed·input1 = p;  p·p = q;  (q + packed)·(input1 + 3) = input2
func testCircuit(t testing.TB, n int) *Circuit {
	t.Helper()
	b := constraint.NewBuilder()
	one := fr.One()
	minus := func(c fr.Element) fr.Element { c.Neg(&c); return c }
	in1, in2 := b.AllocInput(), b.AllocInput()
	bits := make([]constraint.Var, n)
	var sum constraint.LC
	power := fr.One()
	for i := range bits {
		bits[i] = b.AllocBit()
		b.Enforce(constraint.Lin(bits[i]), constraint.Lin(constraint.One).Plus(bits[i], minus(one)), nil)
		sum = sum.Plus(bits[i], power)
		power.Double(&power)
	}
	packed, p, q := b.Alloc(), b.Alloc(), b.Alloc()
	b.Enforce(sum, constraint.Lin(constraint.One), constraint.Lin(packed))
	b.Enforce(constraint.Lin(packed), constraint.Lin(in1), constraint.Lin(p))
	b.Enforce(constraint.Lin(p), constraint.Lin(p), constraint.Lin(q))
	b.Enforce(constraint.Lin(q).Plus(packed, one), constraint.Lin(in1).Plus(constraint.One, fr.NewElement(3)), constraint.Lin(in2))
	c, err := NewCircuit(b.Finish())
	require.NoError(t, err)
	return c
}

// testWitness assigns testCircuit.
func testWitness(c *Circuit, value uint64, in1 fr.Element) *witness.Witness {
	w := witness.New(c.System.Layout())
	wr := witness.NewWriter(w, witness.Start)
	var packed fr.Element
	power := fr.One()
	n := c.System.NumAux() - 3
	for i := range n {
		bit := value>>(i%64)&1 == 1
		wr.Bit(bit)
		if bit {
			packed.Add(&packed, &power)
		}
		power.Double(&power)
	}
	var p, q, in2, t fr.Element
	three := fr.NewElement(3)
	p.Mul(&packed, &in1)
	q.Square(&p)
	in2.Add(&q, &packed)
	in2.Mul(&in2, t.Add(&in1, &three))
	wr.Full(&packed)
	wr.Full(&p)
	wr.Full(&q)
	wr.Input(&in1)
	wr.Input(&in2)
	wr.Close()
	return w
}

// testKey is a proving key from random waste, straight from the definition in
// [Groth16, section 3.2]: each variable's polynomials by Lagrange interpolation.
func testKey(t testing.TB, c *Circuit) *ProvingKey {
	t.Helper()
	waste := random(t, 5)
	alpha, beta, gamma, delta, tau := waste[0], waste[1], waste[2], waste[3], waste[4]
	sys := c.System
	inputs := sys.NumInputs()
	variables := inputs + sys.NumAux()
	n := c.Domain

	lagrange := make([]fr.Element, n)
	w, err := fr.Generator(uint64(n))
	require.NoError(t, err)
	var z fr.Element
	one := fr.One()
	z.Exp(tau, big.NewInt(int64(n)))
	z.Sub(&z, &one)
	root := fr.One()
	for j := range lagrange {
		var den fr.Element
		den.Sub(&tau, &root)
		nn := fr.NewElement(uint64(n))
		den.Mul(&den, &nn)
		lagrange[j].Mul(&z, &root)
		lagrange[j].Div(&lagrange[j], &den)
		root.Mul(&root, &w)
	}
	m := [3][]fr.Element{make([]fr.Element, variables), make([]fr.Element, variables), make([]fr.Element, variables)}
	inDensity := [3][]bool{make([]bool, variables), make([]bool, variables), make([]bool, variables)}
	sys.Rows(0, sys.NumConstraints(), func(row int, ra, rb, rc []constraint.Entry) bool {
		for k, entries := range [3][]constraint.Entry{ra, rb, rc} {
			for _, e := range entries {
				i := int(e.Var)
				if e.Var&constraint.AuxFlag != 0 {
					i = inputs + int(e.Var&^constraint.AuxFlag)
				}
				var x fr.Element
				x.Mul(&lagrange[row], &sys.Coefficients()[e.Coeff])
				m[k][i].Add(&m[k][i], &x)
				inDensity[k][i] = true
			}
		}
		return true
	})
	for i := range inputs {
		m[0][i].Add(&m[0][i], &lagrange[sys.NumConstraints()+i])
		inDensity[0][i] = true
	}
	_, _, g1, g2 := bls12381.Generators()
	in1 := func(x fr.Element) bls12381.G1Affine {
		return *new(bls12381.G1Affine).ScalarMultiplication(&g1, x.BigInt(new(big.Int)))
	}
	in2 := func(x fr.Element) bls12381.G2Affine {
		return *new(bls12381.G2Affine).ScalarMultiplication(&g2, x.BigInt(new(big.Int)))
	}
	pk := &ProvingKey{VK: &VerifyingKey{
		AlphaG1: in1(alpha), BetaG1: in1(beta), BetaG2: in2(beta), GammaG2: in2(gamma), DeltaG1: in1(delta), DeltaG2: in2(delta),
	}}
	for i := range variables {
		if inDensity[0][i] {
			pk.A = append(pk.A, in1(m[0][i]))
		}
		if inDensity[1][i] {
			pk.BG1 = append(pk.BG1, in1(m[1][i]))
			pk.BG2 = append(pk.BG2, in2(m[1][i]))
		}
		var e, x fr.Element
		e.Mul(&m[0][i], &beta)
		x.Mul(&m[1][i], &alpha)
		e.Add(&e, &x)
		e.Add(&e, &m[2][i])
		if i < inputs {
			pk.VK.IC = append(pk.VK.IC, in1(*e.Div(&e, &gamma)))
		} else {
			pk.L = append(pk.L, in1(*e.Div(&e, &delta)))
		}
	}
	h := z
	h.Div(&h, &delta)
	for range n - 1 {
		pk.H = append(pk.H, in1(h))
		h.Mul(&h, &tau)
	}
	return pk
}

func prove(ctx context.Context, d Device, key Source, c *Circuit, w *witness.Witness, b Blinding) (*Proof, error) {
	work, err := d.Prepare(ctx, key, c, w)
	if err != nil {
		return nil, err
	}
	defer work.Release()
	if err := work.Execute(ctx); err != nil {
		return nil, err
	}
	return work.Finish(ctx, b)
}

func newBlinding(t testing.TB) Blinding {
	t.Helper()
	b, err := NewBlinding()
	require.NoError(t, err)
	return b
}

// Completeness and soundness on small circuits: right witnesses give proofs
// that verify for their inputs alone, wrong ones give proofs that do not.
func TestProveAndVerify(t *testing.T) {
	for _, n := range []int{1, 2, 60, 61, 64, 200} {
		t.Run(fmt.Sprint(n, " bits"), func(t *testing.T) {
			c := testCircuit(t, n)
			pk := testKey(t, c)
			pvk, err := pk.VK.Prepare()
			require.NoError(t, err)
			device := NewCPU("cpu", 2)

			w := testWitness(c, 0xdeadbeefcafef00d, fr.NewElement(7))
			require.NoError(t, c.System.Check(t.Context(), w))
			proof, err := prove(t.Context(), device, pk, c, w, newBlinding(t))
			require.NoError(t, err)
			ok, err := pvk.Verify(w.Inputs[1:], proof)
			require.NoError(t, err)
			require.True(t, ok)

			other := testWitness(c, 0xdeadbeefcafef00d, fr.NewElement(8))
			ok, err = pvk.Verify(other.Inputs[1:], proof)
			require.NoError(t, err)
			require.False(t, ok, "other inputs")

			for name, spoil := range map[string]func(w *witness.Witness){
				"bit":   func(w *witness.Witness) { w.Bits[0] ^= 1 },
				"full":  func(w *witness.Witness) { w.Full[2].SetUint64(1) },
				"input": func(w *witness.Witness) { w.Inputs[2].SetUint64(1) },
			} {
				bad := testWitness(c, 0xdeadbeefcafef00d, fr.NewElement(7))
				spoil(bad)
				require.Error(t, c.System.Check(t.Context(), bad))
				proof, err := prove(t.Context(), device, pk, c, bad, newBlinding(t))
				require.NoError(t, err)
				ok, err := pvk.Verify(bad.Inputs[1:], proof)
				require.NoError(t, err)
				require.False(t, ok, name)
			}
		})
	}
}

// With the same blinding there is one proof; with other blinding another one
// that verifies as well. The zero Blinding is refused.
func TestBlinding(t *testing.T) {
	c := testCircuit(t, 10)
	pk := testKey(t, c)
	pvk, err := pk.VK.Prepare()
	require.NoError(t, err)
	w := testWitness(c, 0x155, fr.NewElement(5))
	device := NewCPU("cpu", 1)
	one, err := prove(t.Context(), device, pk, c, w, FixedBlinding(fr.NewElement(2), fr.NewElement(3)))
	require.NoError(t, err)
	same, err := prove(t.Context(), device, pk, c, w, FixedBlinding(fr.NewElement(2), fr.NewElement(3)))
	require.NoError(t, err)
	require.Equal(t, one, same)
	for _, b := range []Blinding{FixedBlinding(fr.NewElement(2), fr.NewElement(4)), FixedBlinding(fr.NewElement(3), fr.NewElement(3)), newBlinding(t), newBlinding(t)} {
		p, err := prove(t.Context(), device, pk, c, w, b)
		require.NoError(t, err)
		require.NotEqual(t, one.B, p.B, "s")
		ok, err := pvk.Verify(w.Inputs[1:], p)
		require.NoError(t, err)
		require.True(t, ok)
		one.B = p.B
	}
	_, err = prove(t.Context(), device, pk, c, w, Blinding{})
	require.ErrorIs(t, err, errNoBlinding)
}

// Many proofs at once share the device, its buffers and one key.
func TestConcurrentProofs(t *testing.T) {
	c := testCircuit(t, 100)
	pk := testKey(t, c)
	pvk, err := pk.VK.Prepare()
	require.NoError(t, err)
	device := NewCPU("cpu", 2)
	source := &countingSource{ProvingKey: pk}
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			w := testWitness(c, uint64(k)*0x9e3779b97f4a7c15, fr.NewElement(uint64(k)))
			b, err := NewBlinding()
			if err != nil {
				t.Error(err)
				return
			}
			p, err := prove(t.Context(), device, source, c, w, b)
			if err != nil {
				t.Error(err)
				return
			}
			if ok, err := pvk.Verify(w.Inputs[1:], p); !ok || err != nil {
				t.Errorf("proof %d: valid: %v, error: %v", k, ok, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 4, source.readG1(), "each query is read once")
	device.Evict(source)
	require.NoError(t, device.Preload(t.Context(), source, c))
	require.Equal(t, 8, source.readG1(), "after eviction it is read again")
}

// However loading, proving, cancelling and evicting meet: work goes on with the key it began with, and after the last of
// it and Evict no block is left.
func TestEvictionFreesAllBlocks(t *testing.T) {
	c := testCircuit(t, 50)
	pk := testKey(t, c)
	pvk, err := pk.VK.Prepare()
	require.NoError(t, err)
	device := NewCPU("cpu", 2)
	source := &countingSource{ProvingKey: pk}
	before := memory.Outside()
	w := testWitness(c, 7, fr.One())

	work, err := device.Prepare(t.Context(), source, c, w)
	require.NoError(t, err)
	loaded := memory.Outside()
	require.Greater(t, loaded, before)
	device.Evict(source)
	require.Equal(t, loaded, memory.Outside(), "the work still needs it")
	work.Release()
	require.Equal(t, before, memory.Outside())

	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := range 6 {
				ctx, cancel := context.WithCancel(t.Context())
				if (k+i)%3 == 0 {
					cancel()
				}
				p, err := prove(ctx, device, source, c, w, newBlinding(t))
				cancel()
				if errors.Is(err, context.Canceled) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if ok, err := pvk.Verify(w.Inputs[1:], p); !ok || err != nil {
					t.Errorf("valid: %v, error: %v", ok, err)
				}
				device.Evict(source)
			}
		})
	}
	wg.Wait()
	device.Evict(source)
	require.Equal(t, before, memory.Outside())
}

// countingSource is a key outside of memory that counts reads and can block or
// fail them.
type countingSource struct {
	*ProvingKey
	mu    sync.Mutex
	reads int
	block chan struct{} // reads wait for it to be closed, if set
	fail  error
}

func (s *countingSource) readG1() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *countingSource) ReadG1(ctx context.Context, q Query, from int, dst []bls12381.G1Affine) error {
	s.mu.Lock()
	s.reads++
	block, fail := s.block, s.fail
	s.mu.Unlock()
	if fail != nil {
		return fail
	}
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return s.ProvingKey.ReadG1(ctx, q, from, dst)
}

// A caller that gives up while it loads a key for others does not fail them;
// a source that fails does, and the next caller tries again.
func TestKeyLoading(t *testing.T) {
	c := testCircuit(t, 10)
	source := &countingSource{ProvingKey: testKey(t, c), block: make(chan struct{})}
	device := NewCPU("cpu", 1)
	given := errors.New("given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	first := make(chan error)
	go func() { first <- device.Preload(ctx, source, c) }()
	require.Eventually(t, func() bool { return source.readG1() == 1 }, 10*time.Second, time.Millisecond)
	second := make(chan error)
	go func() { second <- device.Preload(t.Context(), source, c) }()
	impatient, cancelImpatient := context.WithCancel(t.Context())
	cancelImpatient()
	require.ErrorIs(t, device.Preload(impatient, source, c), context.Canceled)
	cancel(given)
	require.ErrorIs(t, <-first, given)
	close(source.block)
	require.NoError(t, <-second)

	device.Evict(source)
	source.fail = errors.New("disk on fire")
	before := memory.Outside()
	require.ErrorIs(t, device.Preload(t.Context(), source, c), source.fail)
	require.Equal(t, before, memory.Outside())
	source.fail = nil
	require.NoError(t, device.Preload(t.Context(), source, c))
}

// Keys and witnesses of other circuits are refused before any work.
func TestIncompatible(t *testing.T) {
	c, other := testCircuit(t, 10), testCircuit(t, 11)
	pk := testKey(t, c)
	device := NewCPU("cpu", 1)
	w, wOther := testWitness(c, 1, fr.One()), testWitness(other, 1, fr.One())
	var e *IncompatibleError
	_, err := device.Prepare(t.Context(), pk, c, wOther)
	require.ErrorAs(t, err, &e)
	_, err = device.Prepare(t.Context(), pk, other, wOther)
	require.ErrorAs(t, err, &e)
	for q, spoil := range map[Query]func(pk *ProvingKey){
		QueryH:   func(pk *ProvingKey) { pk.H = pk.H[1:] },
		QueryL:   func(pk *ProvingKey) { pk.L = pk.L[1:] },
		QueryA:   func(pk *ProvingKey) { pk.A = pk.A[1:] },
		QueryBG1: func(pk *ProvingKey) { pk.BG1 = pk.BG1[1:] },
		QueryBG2: func(pk *ProvingKey) { pk.BG2 = pk.BG2[1:] },
	} {
		short := *pk
		spoil(&short)
		_, err := device.Prepare(t.Context(), &short, c, w)
		require.ErrorAs(t, err, &e)
		require.Contains(t, err.Error(), "query "+q.String())
	}
	vk := *pk.VK
	vk.DeltaG1 = bls12381.G1Affine{}
	subverted := *pk
	subverted.VK = &vk
	_, err = device.Prepare(t.Context(), &subverted, c, w)
	require.ErrorAs(t, err, &e)
	_, err = vk.Prepare()
	require.Error(t, err)
}

// Calls out of order are errors, and Release is always allowed.
func TestWorkOrder(t *testing.T) {
	c := testCircuit(t, 10)
	pk := testKey(t, c)
	device := NewCPU("cpu", 1)
	work, err := device.Prepare(t.Context(), pk, c, testWitness(c, 1, fr.One()))
	require.NoError(t, err)
	_, err = work.Finish(t.Context(), newBlinding(t))
	require.ErrorIs(t, err, ErrNotExecuted)
	require.NoError(t, work.Execute(t.Context()))
	require.Error(t, work.Execute(t.Context()))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = work.Finish(cancelled, newBlinding(t))
	require.ErrorIs(t, err, context.Canceled)
	_, err = work.Finish(t.Context(), newBlinding(t))
	require.NoError(t, err)
	work.Release()
	work.Release()
	require.ErrorIs(t, work.Execute(t.Context()), ErrReleased)
	_, err = work.Finish(t.Context(), newBlinding(t))
	require.ErrorIs(t, err, ErrReleased)
}

// A cancelled device phase returns the context's cause, and the device goes on
// working.
func TestCancelExecute(t *testing.T) {
	c := testCircuit(t, 200)
	pk := testKey(t, c)
	device := NewCPU("cpu", 2)
	w := testWitness(c, 12345, fr.NewElement(9))
	for delay := time.Duration(0); delay < 20*time.Millisecond; delay += time.Millisecond {
		work, err := device.Prepare(t.Context(), pk, c, w)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), delay)
		if err := work.Execute(ctx); err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = work.Finish(t.Context(), newBlinding(t))
			require.ErrorIs(t, err, ErrNotExecuted)
		}
		cancel()
		work.Release()
	}
	_, err := prove(t.Context(), device, pk, c, w, newBlinding(t))
	require.NoError(t, err)
}

func BenchmarkQuotient(b *testing.B) {
	for _, log := range []int{17, 19} {
		b.Run(fmt.Sprint("2^", log), func(b *testing.B) {
			n := 1 << log
			x, y, z := random(b, n), random(b, n), random(b, n)
			d := newDomain(n)
			b.SetBytes(int64(n))
			for b.Loop() {
				if err := d.quotient(b.Context(), x, y, func(to []fr.Element) error { copy(to, z); return nil }, 2); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
