package params

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"runtime"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
)

// generator makes the points of a proving key, [Groth16, section 3.2].
type generator struct {
	circuit    *groth16.Circuit
	waste      *toxicWaste
	qap        *qap
	inputs     int
	multiplier Multiplier

	progress    func(done, total int)
	done, total int
}

func newGenerator(ctx context.Context, circuit *groth16.Circuit, multiplier Multiplier, progress func(done, total int)) (*generator, error) {
	g := &generator{
		circuit: circuit, waste: devWaste(), inputs: circuit.System.NumInputs(),
		multiplier: multiplier, progress: progress,
	}
	var err error
	g.qap, err = evaluateQAP(ctx, circuit, &g.waste.tau)
	if err != nil {
		return nil, err
	}
	if err := g.checkDensity(); err != nil {
		return nil, err
	}
	g.total = g.inputs
	for q := range groth16.Query(groth16.NumQueries) {
		g.total += circuit.QueryLen(q)
	}
	if multiplier == nil {
		inG2 := circuit.QueryLen(groth16.QueryBG2)
		if g.multiplier, err = newCPUMultiplier(ctx, g.total-inG2, inG2); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// checkDensity compares the polynomials that are zero at tau, whose points the
// file leaves out, with the densities that provers go by.
func (g *generator) checkDensity() error {
	for _, m := range []struct {
		name   string
		values []fr.Element
		want   int
	}{
		{"A", g.qap.a, g.circuit.QueryLen(groth16.QueryA)},
		{"B", g.qap.b, g.circuit.QueryLen(groth16.QueryBG1)},
	} {
		n := 0
		for i := range m.values {
			if !m.values[i].IsZero() {
				n++
			}
		}
		if n != m.want {
			return fmt.Errorf("matrix %s has %d variables, but %d of its polynomials are not zero at tau", m.name, m.want, n)
		}
	}
	return nil
}

func (g *generator) verifyingKey(ctx context.Context) (*groth16.VerifyingKey, error) {
	vk := g.waste.header()
	var gammaInverse fr.Element
	gammaInverse.Inverse(&g.waste.gamma)
	vk.IC = make([]bls12381.G1Affine, g.inputs)
	batch := g.multiplier.Batch()
	for from := 0; from < g.inputs; from += batch {
		n := min(batch, g.inputs-from)
		exponents, points := make([]fr.Element, n), make([]byte, n*g1Bytes)
		if err := g.external(ctx, exponents, from, &gammaInverse); err != nil {
			return nil, err
		}
		if err := g.multiplier.MultiplesG1(ctx, points, exponents); err != nil {
			return nil, err
		}
		for i := range n {
			if err := decodeG1(&vk.IC[from+i], points[i*g1Bytes:]); err != nil {
				return nil, fmt.Errorf("point %d of the verifying key: %w", from+i, err)
			}
		}
	}
	g.report(g.inputs)
	return &vk, nil
}

func (g *generator) report(points int) {
	g.done += points
	if g.progress != nil {
		g.progress(g.done, g.total)
	}
}

// The exponents of a query's points. Functions of type exponents fill dst with
// those of the points from on; they are asked for all of them, in order.
type exponents func(ctx context.Context, dst []fr.Element, from int) error

func (g *generator) exponents(q groth16.Query) exponents {
	switch q {
	case groth16.QueryH:
		return g.powers()
	case groth16.QueryL:
		return g.auxiliary()
	case groth16.QueryA:
		return nonZero(g.qap.a)
	default: // B in both groups
		return nonZero(g.qap.b)
	}
}

// powers are tau^i·(tau^n - 1)/delta for i < n-1: H.
func (g *generator) powers() exponents {
	factor := vanishing(&g.waste.tau, g.circuit.Domain)
	factor.Div(&factor, &g.waste.delta)
	return func(ctx context.Context, dst []fr.Element, from int) error {
		return constraint.Parallel(ctx, len(dst), qapGrain, runtime.GOMAXPROCS(0), func(lo, hi int) error {
			powersFrom(dst[lo:hi], &g.waste.tau, from+lo)
			for i := lo; i < hi; i++ {
				dst[i].Mul(&dst[i], &factor)
			}
			return nil
		})
	}
}

// auxiliary are (beta·u_i + alpha·v_i + w_i)(tau)/delta for the auxiliary
// variables: L. None may be zero: a variable that no constraint mentions.
func (g *generator) auxiliary() exponents {
	var deltaInverse fr.Element
	deltaInverse.Inverse(&g.waste.delta)
	return func(ctx context.Context, dst []fr.Element, from int) error {
		if err := g.external(ctx, dst, g.inputs+from, &deltaInverse); err != nil {
			return err
		}
		for i := range dst {
			if dst[i].IsZero() {
				return fmt.Errorf("auxiliary variable %d is in no constraint", from+i)
			}
		}
		return nil
	}
}

// external fills dst with (beta·u_i + alpha·v_i + w_i)(tau)·factor for the
// variables from on: the exponents of IC and L.
func (g *generator) external(ctx context.Context, dst []fr.Element, from int, factor *fr.Element) error {
	return constraint.Parallel(ctx, len(dst), qapGrain, runtime.GOMAXPROCS(0), func(lo, hi int) error {
		for k := lo; k < hi; k++ {
			i := from + k
			var t fr.Element
			dst[k].Mul(&g.qap.a[i], &g.waste.beta)
			t.Mul(&g.qap.b[i], &g.waste.alpha)
			dst[k].Add(&dst[k], &t)
			dst[k].Add(&dst[k], &g.qap.c[i])
			dst[k].Mul(&dst[k], factor)
		}
		return nil
	})
}

// nonZero are the values that are not zero, in order: A, and B in both groups,
// inputs first.
func nonZero(values []fr.Element) exponents {
	next := 0
	return func(_ context.Context, dst []fr.Element, _ int) error {
		for i := range dst {
			for values[next].IsZero() {
				next++
			}
			dst[i] = values[next]
			next++
		}
		return nil
	}
}

// piece is a part of the parameter file on its way from exponents to bytes.
type piece struct {
	query   groth16.Query
	head    []byte // what comes before the points
	scalars []fr.Element
	points  []byte
}

// pieces are under way at most: one for each stage and one to spare.
const pieces = 5

// write writes the parameter file to w and its bytes into digest, and returns
// how many there are. Exponents, points, digest and file are made in stages that
// run beside each other.
func (g *generator) write(ctx context.Context, w io.Writer, digest hash.Hash, vk []byte) (size int64, err error) {
	free := make(chan *piece, pieces)
	for range pieces {
		free <- new(piece)
	}
	withExponents, withPoints, digested := make(chan *piece), make(chan *piece), make(chan *piece)

	stages, ctx := errgroup.WithContext(ctx)
	start := func(run func() error) {
		stages.Go(func() error { return interlock.Protect(run) })
	}
	start(func() error {
		defer close(withExponents)
		return g.makeExponents(ctx, vk, free, withExponents)
	})
	start(func() error {
		defer close(withPoints)
		return pass(ctx, withExponents, withPoints, func(p *piece) error { return g.multiply(ctx, p) })
	})
	start(func() error {
		defer close(digested)
		return pass(ctx, withPoints, digested, func(p *piece) error {
			digest.Write(p.head)
			digest.Write(p.points)
			return nil
		})
	})
	start(func() error {
		return pass(ctx, digested, free, func(p *piece) error {
			for _, b := range [][]byte{p.head, p.points} {
				n, err := w.Write(b)
				size += int64(n)
				if err != nil {
					return err
				}
			}
			g.report(len(p.scalars))
			return nil
		})
	})
	err = stages.Wait()
	return size, err
}

// pass does a stage's work on each piece that comes and hands it on, until no
// more come or ctx is done.
func pass(ctx context.Context, from <-chan *piece, to chan<- *piece, work func(p *piece) error) error {
	for p := range from {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := work(p); err != nil {
			return err
		}
		select {
		case to <- p:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// makeExponents is the first stage: it cuts the queries into pieces. The
// verifying key comes before the first, a query's number of points before it.
func (g *generator) makeExponents(ctx context.Context, vk []byte, free <-chan *piece, to chan<- *piece) error {
	head := vk
	for q := range groth16.Query(groth16.NumQueries) {
		n := g.circuit.QueryLen(q)
		head = binary.BigEndian.AppendUint32(head, uint32(n))
		batch := min(g.multiplier.Batch(), n)
		exponents := g.exponents(q)
		for from, more := 0, true; more; from += batch { // an empty query is a piece, too
			more = from+batch < n
			var p *piece
			select {
			case p = <-free:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			p.query, p.head, head = q, head, nil
			p.scalars = resize(p.scalars, min(batch, n-from))
			p.points = resize(p.points, len(p.scalars)*q.PointBytes())
			if err := exponents(ctx, p.scalars, from); err != nil {
				return fmt.Errorf("query %s: %w", q, err)
			}
			select {
			case to <- p:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// resize returns a slice of n elements, in s's memory if they fit.
func resize[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, n)
	}
	return s[:n]
}

func (g *generator) multiply(ctx context.Context, p *piece) error {
	if len(p.scalars) == 0 {
		return nil
	}
	multiples := g.multiplier.MultiplesG1
	if p.query == groth16.QueryBG2 {
		multiples = g.multiplier.MultiplesG2
	}
	if err := multiples(ctx, p.points, p.scalars); err != nil {
		return fmt.Errorf("query %s: %w", p.query, err)
	}
	return nil
}
