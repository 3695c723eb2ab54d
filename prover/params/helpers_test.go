package params

import (
	"math/big"
	"strconv"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
)

func newInt() *big.Int { return new(big.Int) }

func itoa(n int) string { return strconv.Itoa(n) }

// naiveQAP evaluates the circuit's polynomials at tau by the product formula of
// Lagrange interpolation, O(n²).
func naiveQAP(circuit *groth16.Circuit, tau *fr.Element) (a, b, c []fr.Element) {
	sys := circuit.System
	n := circuit.Domain
	// A root of unity of order n: 7 generates the multiplicative group.
	order := new(big.Int).Sub(fr.Modulus(), big.NewInt(1))
	var w fr.Element
	w.Exp(fr.NewElement(7), order.Div(order, big.NewInt(int64(n))))
	roots := make([]fr.Element, n)
	roots[0].SetOne()
	for i := 1; i < n; i++ {
		roots[i].Mul(&roots[i-1], &w)
	}
	lagrange := func(j int) fr.Element {
		l := fr.One()
		for k := range roots {
			if k == j {
				continue
			}
			var num, den fr.Element
			num.Sub(tau, &roots[k])
			den.Sub(&roots[j], &roots[k])
			l.Mul(&l, num.Div(&num, &den))
		}
		return l
	}
	inputs := sys.NumInputs()
	variables := inputs + sys.NumAux()
	a, b, c = make([]fr.Element, variables), make([]fr.Element, variables), make([]fr.Element, variables)
	sys.Rows(0, sys.NumConstraints(), func(row int, ra, rb, rc []constraint.Entry) bool {
		l := lagrange(row)
		for _, m := range []struct {
			to      []fr.Element
			entries []constraint.Entry
		}{{a, ra}, {b, rb}, {c, rc}} {
			for _, e := range m.entries {
				i := int(e.Var)
				if e.Var&constraint.AuxFlag != 0 {
					i = inputs + int(e.Var&^constraint.AuxFlag)
				}
				var t fr.Element
				t.Mul(&l, &sys.Coefficients()[e.Coeff])
				m.to[i].Add(&m.to[i], &t)
			}
		}
		return true
	})
	for i := range inputs {
		l := lagrange(sys.NumConstraints() + i)
		a[i].Add(&a[i], &l)
	}
	return a, b, c
}
