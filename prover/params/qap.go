package params

import (
	"context"
	"fmt"
	"math/big"
	"runtime"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
)

// qap are the polynomials of a quadratic arithmetic program evaluated at tau,
// one element for each variable: inputs first, then auxiliary variables.
type qap struct {
	a, b, c []fr.Element
}

// evaluateQAP evaluates the polynomials of the circuit's matrices at tau,
// including the constraints input_i·0 = 0 that setup adds (bellperson's
// generate_parameters). Beside the Lagrange coefficients, an element for each
// row of the domain, it takes three elements a variable.
func evaluateQAP(ctx context.Context, circuit *groth16.Circuit, tau *fr.Element) (*qap, error) {
	sys := circuit.System
	lagrange, err := lagrangeAt(ctx, tau, circuit.Domain)
	if err != nil {
		return nil, err
	}
	inputs := sys.NumInputs()
	n := inputs + sys.NumAux()
	v := &qap{a: make([]fr.Element, n), b: make([]fr.Element, n), c: make([]fr.Element, n)}
	coeffs := sys.Coefficients()

	// Threads take ranges of rows. Their variables are mostly their own, but
	// not all, so that each addition happens under the lock of a stripe of
	// variables. The lock is kept while additions stay within the stripe. The
	// constant one, which is everybody's, is summed up apart.
	const stripe, stripes = 64, 1024
	var locks [stripes]sync.Mutex
	err = constraint.Parallel(ctx, sys.NumConstraints(), qapGrain, runtime.GOMAXPROCS(0), func(from, to int) error {
		var held *sync.Mutex
		lock := func(i int) {
			if lock := &locks[i/stripe%stripes]; lock != held {
				if held != nil {
					held.Unlock()
				}
				lock.Lock()
				held = lock
			}
		}
		add := func(values []fr.Element, one *fr.Element, row []constraint.Entry, u *fr.Element) {
			for _, e := range row {
				to := one
				if e.Var != 0 {
					i := int(e.Var)
					if e.Var&constraint.AuxFlag != 0 {
						i = inputs + int(e.Var&^constraint.AuxFlag)
					}
					lock(i)
					to = &values[i]
				}
				switch e.Coeff {
				case constraint.CoeffOne:
					to.Add(to, u)
				case constraint.CoeffMinusOne:
					to.Sub(to, u)
				default:
					var t fr.Element
					t.Mul(u, &coeffs[e.Coeff])
					to.Add(to, &t)
				}
			}
		}
		var ones [3]fr.Element
		sys.Rows(from, to, func(row int, a, b, c []constraint.Entry) bool {
			u := &lagrange[row]
			add(v.a, &ones[0], a, u)
			add(v.b, &ones[1], b, u)
			add(v.c, &ones[2], c, u)
			return true
		})
		lock(0)
		for m, values := range [][]fr.Element{v.a, v.b, v.c} {
			values[0].Add(&values[0], &ones[m])
		}
		held.Unlock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range inputs {
		v.a[i].Add(&v.a[i], &lagrange[sys.NumConstraints()+i])
	}
	return v, nil
}

// qapGrain constraints are handled at a time: a few milliseconds.
const qapGrain = 1 << 14

// lagrangeAt evaluates the n Lagrange polynomials of the domain at tau:
// L_j(tau) = (tau^n - 1)/n · w^j/(tau - w^j) for the n-th root of unity w. These
// are what the inverse FFT of the powers of tau gives, at a lower price.
func lagrangeAt(ctx context.Context, tau *fr.Element, n int) ([]fr.Element, error) {
	w, err := fr.Generator(uint64(n))
	if err != nil {
		return nil, fmt.Errorf("domain of %d: %w", n, err)
	}
	z := vanishing(tau, n)
	if z.IsZero() {
		return nil, fmt.Errorf("tau is a root of unity")
	}
	var scale fr.Element
	scale.SetUint64(uint64(n))
	scale.Inverse(&scale)
	scale.Mul(&scale, &z)
	out := make([]fr.Element, n)
	err = constraint.Parallel(ctx, n, qapGrain, runtime.GOMAXPROCS(0), func(from, to int) error {
		powers := make([]fr.Element, to-from)
		powersFrom(powers, &w, from)
		differences := make([]fr.Element, to-from)
		for i := range differences {
			differences[i].Sub(tau, &powers[i])
		}
		differences = fr.BatchInvert(differences)
		for i := range powers {
			out[from+i].Mul(&powers[i], &differences[i])
			out[from+i].Mul(&out[from+i], &scale)
		}
		return nil
	})
	return out, err
}

// vanishing is x^n - 1, the polynomial that is zero on the domain.
func vanishing(x *fr.Element, n int) fr.Element {
	var z fr.Element
	one := fr.One()
	z.Exp(*x, big.NewInt(int64(n)))
	z.Sub(&z, &one)
	return z
}

// powersFrom fills dst with x^from, x^(from+1), ...
func powersFrom(dst []fr.Element, x *fr.Element, from int) {
	var p fr.Element
	p.Exp(*x, big.NewInt(int64(from)))
	for i := range dst {
		dst[i] = p
		p.Mul(&p, x)
	}
}
