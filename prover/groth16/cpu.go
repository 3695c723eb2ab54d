package groth16

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"runtime"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/memory"
	"github.com/interlock-prover/interlock/prover/msm"
	"github.com/interlock-prover/interlock/prover/witness"
)

// CPU is the Device that computes on the processor, with gnark-crypto's
// transforms and package msm's sums. It keeps the points of every key it has
// used in memory until Evict.
type CPU struct {
	name    string
	threads int

	keys *interlock.Loads[Source, *ProvingKey] // in blocks of package memory
}

var _ Device = (*CPU)(nil)

// NewCPU makes a device that uses the given number of threads, or all cores if
// it is 0.
func NewCPU(name string, threads int) *CPU {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return &CPU{name: name, threads: threads, keys: interlock.NewLoads[Source]((*ProvingKey).free, nil)}
}

// Name implements Device.
func (d *CPU) Name() string { return d.name }

const (
	g1PointBytes = 96  // of a bls12381.G1Affine
	g2PointBytes = 192 // of a bls12381.G2Affine
)

// Footprint implements Device.
func (d *CPU) Footprint(key Source, c *Circuit) Footprint {
	var f Footprint
	if _, inMemory := key.(*ProvingKey); !inMemory {
		for q := range Query(NumQueries) {
			size := int64(g1PointBytes)
			if q == QueryBG2 {
				size = g2PointBytes
			}
			f.KeyBytes += int64(c.QueryLen(q)) * size
		}
	}
	f.ExecuteBytes = d.executeBytes(c)
	return f
}

// executeBytes is what a device phase takes at most: two buffers of the domain or,
// once one of them has become H, that and the sum over it; beside that the sums over
// the variables that are not bits, in G1 and in G2 (see Execute).
func (d *CPU) executeBytes(c *Circuit) int64 {
	domain := fr.Bytes * int64(c.Domain)
	quotient := max(2*domain, domain+d.sumBytes(c.Domain, g1PointBytes))
	full := c.System.Layout().NumFull() + c.System.NumInputs()
	return quotient + d.sumBytes(full, g1PointBytes) + d.sumBytes(full, g2PointBytes)
}

// sumBytes is what a sum over n scalars takes (see msm.G1): of each its digits
// and where it and its base are, of each thread its order of the scalars, a
// bucket for every fourth of them, up to 2^17, and a block of points.
func (d *CPU) sumBytes(n int, pointBytes int64) int64 {
	const chunk, maxBuckets, block = 4 << 20, 1 << 17, 2 << 20
	perThread := 8*int64(min(n, chunk)) + min(int64(n)/4, maxBuckets)*(pointBytes+4) + block
	return int64(n)*8 + fr.Bytes*int64(min(n, chunk)) + int64(d.threads)*perThread
}

// Preload implements Device.
func (d *CPU) Preload(ctx context.Context, key Source, c *Circuit) error {
	loaded, _, err := d.load(ctx, key, c)
	if err == nil {
		d.keys.Leave(loaded)
	}
	return err
}

// Evict implements Device.
func (d *CPU) Evict(key Source) { d.keys.Evict(key) }

// load returns the points of a key, which stay until loaded is left. Those of a
// key in memory are the caller's, and loaded is nil.
func (d *CPU) load(ctx context.Context, key Source, c *Circuit) (loaded *interlock.Load[Source, *ProvingKey], pk *ProvingKey, err error) {
	if err := c.CheckKey(key); err != nil {
		return nil, nil, err
	}
	if pk, ok := key.(*ProvingKey); ok {
		return nil, pk, nil
	}
	loaded, err = d.keys.Get(ctx, key, func() (*ProvingKey, error) { return readKey(ctx, key) })
	if err != nil {
		return nil, nil, err
	}
	return loaded, loaded.Value, nil
}

// readKey decodes a key into blocks of package memory, which are to be freed even
// if it fails.
func readKey(ctx context.Context, key Source) (*ProvingKey, error) {
	pk := &ProvingKey{VK: key.VerifyingKey()}
	return pk, pk.read(ctx, key)
}

func (pk *ProvingKey) read(ctx context.Context, key Source) (err error) {
	for _, part := range []struct {
		q  Query
		to *[]bls12381.G1Affine
	}{{QueryH, &pk.H}, {QueryL, &pk.L}, {QueryA, &pk.A}, {QueryBG1, &pk.BG1}} {
		if *part.to, err = memory.Alloc[bls12381.G1Affine](key.Len(part.q)); err != nil {
			return err
		}
		if err := key.ReadG1(ctx, part.q, 0, *part.to); err != nil {
			return fmt.Errorf("loading query %s: %w", part.q, err)
		}
	}
	if pk.BG2, err = memory.Alloc[bls12381.G2Affine](key.Len(QueryBG2)); err != nil {
		return err
	}
	if err := key.ReadG2(ctx, 0, pk.BG2); err != nil {
		return fmt.Errorf("loading query %s: %w", QueryBG2, err)
	}
	return nil
}

// free gives the blocks of readKey back, where there are any.
func (pk *ProvingKey) free() {
	if pk == nil {
		return
	}
	for _, points := range []*[]bls12381.G1Affine{&pk.H, &pk.L, &pk.A, &pk.BG1} {
		memory.Free(*points)
		*points = nil
	}
	memory.Free(pk.BG2)
	pk.BG2 = nil
}

// Prepare implements Device.
func (d *CPU) Prepare(ctx context.Context, key Source, c *Circuit, w *witness.Witness) (Work, error) {
	if err := c.CheckWitness(w); err != nil {
		return nil, err
	}
	loaded, pk, err := d.load(ctx, key, c)
	if err != nil {
		return nil, err
	}
	return &cpuWork{device: d, loaded: loaded, pk: pk, circuit: c, witness: w}, nil
}

// cpuWork is a proof on the CPU.
type cpuWork struct {
	device  *CPU
	loaded  *interlock.Load[Source, *ProvingKey]
	pk      *ProvingKey
	circuit *Circuit
	witness *witness.Witness
	// a and b are the values of A and B on the domain, in blocks of package
	// memory that the device phase makes, since only it needs them. Later b has
	// those of C, and a becomes H.
	a, b []fr.Element

	sums     *Sums
	released bool
}

// Sums are the multi-exponentiations of a proof, [Groth16, section 3.2]: what a
// device phase computes. Σ h_i·H_i, Σ w_i·L_i, Σ w_i·A_i, Σ w_i·B_i.
type Sums struct {
	H, L, A, B1 bls12381.G1Jac
	B2          bls12381.G2Jac
}

// Execute implements Work. The sums over the witness need no quotient and run
// beside it. Each of the three strands, which take about the same time, can use
// all threads, so that one fills what the others leave idle.
func (w *cpuWork) Execute(ctx context.Context) error {
	if w.released {
		return ErrReleased
	}
	if w.sums != nil {
		return errors.New("device phase was executed before")
	}
	if err := w.makeBuffers(); err != nil {
		return err
	}
	s, pk := &Sums{}, w.pk
	strands, ctx := errgroup.WithContext(ctx)
	strand := func(run func() error) {
		strands.Go(func() error { return interlock.Protect(run) })
	}
	strand(func() (err error) {
		if err := w.quotient(ctx); err != nil {
			return fmt.Errorf("quotient: %w", err)
		}
		// The quotient's degree is at most n-2: its last coefficient has no point.
		s.H, err = msm.G1(ctx, pk.H, w.a[:len(pk.H)], w.device.threads)
		return sumError(QueryH, err)
	})
	strand(func() error { return w.sumsG1(ctx, s) })
	strand(func() error { return w.sumsG2(ctx, s) })
	err := strands.Wait()
	w.freeBuffers()
	if err != nil {
		return err
	}
	w.sums = s
	return nil
}

func sumError(q Query, err error) error {
	if err != nil {
		return fmt.Errorf("query %s: %w", q, err)
	}
	return nil
}

// quotient evaluates the constraints, those of the inputs included, and turns
// them into the coefficients of H, in w.a.
func (w *cpuWork) quotient(ctx context.Context) error {
	threads := w.device.threads
	sys := w.circuit.System
	if err := sys.Evaluate(ctx, w.witness, w.a, w.b, nil, threads); err != nil {
		return err
	}
	// input_i·0 = 0, then nothing up to the end of the domain.
	n := sys.NumConstraints()
	clear(w.a[n+copy(w.a[n:], w.witness.Inputs):])
	clear(w.b[n:])
	err := w.circuit.transforms().quotient(ctx, w.a, w.b, func(c []fr.Element) error {
		clear(c[n:])
		return sys.Evaluate(ctx, w.witness, nil, nil, c, threads)
	}, threads)
	if err == nil {
		free(&w.b)
	}
	return err
}

// aux are the auxiliary variables, those of them that have a point.
func (w *cpuWork) aux(dense []uint64) *msm.Compact {
	l := w.witness.Layout
	return &msm.Compact{N: l.NumAux(), IsBit: l.BitMap(), Bits: w.witness.Bits, Full: w.witness.Full, Dense: dense}
}

// bInputs are the inputs, those of them that occur in B, and their number.
func (w *cpuWork) bInputs() (*msm.Compact, int) {
	dense := w.circuit.Density.BInputs
	return &msm.Compact{N: len(w.witness.Inputs), Full: w.witness.Inputs, Dense: dense}, popcount(dense)
}

// sumsG1 computes the sums over the variables in G1. Points of A are those of
// all inputs, then of the auxiliary variables that occur in A; points of B those
// of the inputs and of the auxiliary variables that occur in B (bellperson's
// ParameterSource).
func (w *cpuWork) sumsG1(ctx context.Context, s *Sums) error {
	threads := w.device.threads
	var err error
	if s.L, err = msm.G1Compact(ctx, w.pk.L, w.aux(nil), threads); err != nil {
		return sumError(QueryL, err)
	}

	inputs := w.witness.Inputs
	a, err := msm.G1(ctx, w.pk.A[:len(inputs)], inputs, threads)
	if err != nil {
		return sumError(QueryA, err)
	}
	if s.A, err = msm.G1Compact(ctx, w.pk.A[len(inputs):], w.aux(w.circuit.Density.AAux), threads); err != nil {
		return sumError(QueryA, err)
	}
	s.A.AddAssign(&a)

	bInputs, n := w.bInputs()
	b, err := msm.G1Compact(ctx, w.pk.BG1[:n], bInputs, threads)
	if err != nil {
		return sumError(QueryBG1, err)
	}
	if s.B1, err = msm.G1Compact(ctx, w.pk.BG1[n:], w.aux(w.circuit.Density.BAux), threads); err != nil {
		return sumError(QueryBG1, err)
	}
	s.B1.AddAssign(&b)
	return nil
}

// sumsG2 computes that of B in G2.
func (w *cpuWork) sumsG2(ctx context.Context, s *Sums) error {
	threads := w.device.threads
	bInputs, n := w.bInputs()
	b, err := msm.G2Compact(ctx, w.pk.BG2[:n], bInputs, threads)
	if err != nil {
		return sumError(QueryBG2, err)
	}
	if s.B2, err = msm.G2Compact(ctx, w.pk.BG2[n:], w.aux(w.circuit.Density.BAux), threads); err != nil {
		return sumError(QueryBG2, err)
	}
	s.B2.AddAssign(&b)
	return nil
}

// Finish implements Work.
func (w *cpuWork) Finish(ctx context.Context, b Blinding) (*Proof, error) {
	switch {
	case w.released:
		return nil, ErrReleased
	case w.sums == nil:
		return nil, ErrNotExecuted
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return w.sums.Assemble(w.pk.VK, b)
}

// Release implements Work.
func (w *cpuWork) Release() {
	if w.released {
		return
	}
	w.device.keys.Leave(w.loaded)
	w.released, w.sums, w.loaded, w.pk, w.witness = true, nil, nil, nil, nil
}

func (w *cpuWork) makeBuffers() (err error) {
	for _, v := range []*[]fr.Element{&w.a, &w.b} {
		if *v, err = memory.Alloc[fr.Element](w.circuit.Domain); err != nil {
			w.freeBuffers()
			return err
		}
	}
	return nil
}

func (w *cpuWork) freeBuffers() {
	free(&w.a)
	free(&w.b)
}

// free gives a block back and clears the variable that holds it.
func free(v *[]fr.Element) {
	memory.Free(*v)
	*v = nil
}

// Assemble makes the proof, [Groth16, section 3.2]:
//
//	A = alpha + Σ w_i·A_i + r·delta
//	B = beta + Σ w_i·B_i + s·delta
//	C = Σ w_i·L_i + Σ h_i·H_i + s·A + r·B - r·s·delta
func (s *Sums) Assemble(vk *VerifyingKey, blinding Blinding) (*Proof, error) {
	if !blinding.set {
		return nil, errNoBlinding
	}
	var r, t, rt big.Int // t is the paper's s
	blinding.r.BigInt(&r)
	blinding.s.BigInt(&t)
	var product fr.Element
	product.Mul(&blinding.r, &blinding.s)
	product.BigInt(&rt)

	var delta, a, b1, c, x bls12381.G1Jac
	delta.FromAffine(&vk.DeltaG1)
	a.ScalarMultiplication(&delta, &r)
	a.AddMixed(&vk.AlphaG1)
	a.AddAssign(&s.A)

	var delta2, b2 bls12381.G2Jac
	delta2.FromAffine(&vk.DeltaG2)
	b2.ScalarMultiplication(&delta2, &t)
	b2.AddMixed(&vk.BetaG2)
	b2.AddAssign(&s.B2)

	b1.ScalarMultiplication(&delta, &t)
	b1.AddMixed(&vk.BetaG1)
	b1.AddAssign(&s.B1)

	c.ScalarMultiplication(&a, &t)
	c.AddAssign(x.ScalarMultiplication(&b1, &r))
	c.SubAssign(x.ScalarMultiplication(&delta, &rt))
	c.AddAssign(&s.H)
	c.AddAssign(&s.L)

	proof := &Proof{}
	proof.A.FromJacobian(&a)
	proof.B.FromJacobian(&b2)
	proof.C.FromJacobian(&c)
	return proof, nil
}
