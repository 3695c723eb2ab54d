package groth16

import (
	"context"
	"math/big"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"

	"github.com/interlock-prover/interlock/prover/constraint"
)

// maxBlock is the largest transform done by gnark-crypto in one go. Larger ones
// are first split into blocks of this size. It bounds what cannot be
// interrupted to some 20 ms on one core, and the tables of roots of unity to
// 8 MiB, whatever the size of the domain.
const maxBlock = 1 << 16

// domain transforms polynomials between coefficients and values on the roots
// of unity of order n, the same that bellperson uses: powers of
// 7^((r-1)/n). Coefficients are in bit-reversed order, values in natural
// order, so that no transform has to permute.
type domain struct {
	n     int
	block *fft.Domain // of the lowest stages: all of them up to maxBlock

	// roots[i] is the root of unity of the i-th stage above the block's, from
	// the bottom, and rootsInverse[i] its inverse.
	roots, rootsInverse []fr.Element
}

func newDomain(n int) *domain {
	d := &domain{n: n, block: fft.NewDomain(uint64(min(n, maxBlock)), fft.WithCache())}
	for size := 2 * maxBlock; size <= n; size *= 2 {
		root, err := fr.Generator(uint64(size))
		if err != nil { // DomainSize admits no such size
			panic(err)
		}
		var inverse fr.Element
		inverse.Inverse(&root)
		d.roots = append(d.roots, root)
		d.rootsInverse = append(d.rootsInverse, inverse)
	}
	return d
}

// nttGrain butterflies of the upper stages are done at a time.
const nttGrain = 1 << 12

// interpolate turns values into coefficients times unscaled(), in place.
func (d *domain) interpolate(ctx context.Context, v []fr.Element, threads int) error {
	for i := len(d.rootsInverse) - 1; i >= 0; i-- {
		half := maxBlock << i
		root := &d.rootsInverse[i]
		err := d.stage(ctx, v, half, root, threads, func(x, y, power *fr.Element) {
			var t fr.Element
			t.Sub(x, y)
			x.Add(x, y)
			y.Mul(&t, power)
		})
		if err != nil {
			return err
		}
	}
	return d.blocks(ctx, v, threads, func(block []fr.Element, threads int) {
		d.block.FFTInverse(block, fft.DIF, fft.WithNbTasks(threads))
	})
}

// unscaled is the factor by which interpolate's results are too large: what is
// left to the caller, who scales anyway.
func (d *domain) unscaled() fr.Element {
	return fr.NewElement(uint64(d.n) / d.block.Cardinality)
}

// evaluate turns coefficients into values, in place.
func (d *domain) evaluate(ctx context.Context, v []fr.Element, threads int) error {
	err := d.blocks(ctx, v, threads, func(block []fr.Element, threads int) {
		d.block.FFT(block, fft.DIT, fft.WithNbTasks(threads))
	})
	for i := range d.roots {
		if err != nil {
			return err
		}
		half := maxBlock << i
		err = d.stage(ctx, v, half, &d.roots[i], threads, func(x, y, power *fr.Element) {
			var t fr.Element
			t.Mul(y, power)
			y.Sub(x, &t)
			x.Add(x, &t)
		})
	}
	return err
}

// blocks transforms all blocks, several at a time if there are several.
func (d *domain) blocks(ctx context.Context, v []fr.Element, threads int, transform func(block []fr.Element, threads int)) error {
	size := int(d.block.Cardinality)
	if d.n == size {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		transform(v, threads)
		return nil
	}
	return constraint.Parallel(ctx, d.n, size, threads, func(from, to int) error {
		transform(v[from:to], 1)
		return nil
	})
}

// stage does one stage above the blocks: in every run of 2·half elements,
// butterfly is called with elements j and j+half and root^j.
func (d *domain) stage(ctx context.Context, v []fr.Element, half int, root *fr.Element, threads int, butterfly func(x, y, power *fr.Element)) error {
	return constraint.Parallel(ctx, d.n/2, nttGrain, threads, func(from, to int) error {
		j := from % half
		at := (from-j)*2 + j // half is a multiple of the grain
		var power fr.Element
		power.Exp(*root, big.NewInt(int64(j)))
		for i := at; i < at+to-from; i++ {
			butterfly(&v[i], &v[i+half], &power)
			power.Mul(&power, root)
		}
		return nil
	})
}

// scalePowers multiplies the coefficient of x^i by factor·shift^i.
func (d *domain) scalePowers(ctx context.Context, v []fr.Element, shift, factor *fr.Element, threads int) error {
	// Position hi·row + lo holds the coefficient number
	// reverse(lo)·(n/row) + reverse(hi).
	row := min(d.n, 1<<10)
	rows := d.n / row
	var step fr.Element
	step.Exp(*shift, big.NewInt(int64(rows)))
	powers := make([]fr.Element, row)
	p := fr.One()
	for i := range row {
		powers[reverse(i, row)] = p
		p.Mul(&p, &step)
	}
	return constraint.Parallel(ctx, rows, 1<<4, threads, func(from, to int) error {
		for hi := from; hi < to; hi++ {
			var f fr.Element
			f.Exp(*shift, big.NewInt(int64(reverse(hi, rows))))
			f.Mul(&f, factor)
			part := v[hi*row : (hi+1)*row]
			for i := range part {
				part[i].Mul(&part[i], &powers[i])
				part[i].Mul(&part[i], &f)
			}
		}
		return nil
	})
}

// reverse reverses the bits of an index below the power of two n.
func reverse(i, n int) int {
	return int(bits.Reverse64(uint64(i)) >> (64 - bits.Len(uint(n-1))))
}
