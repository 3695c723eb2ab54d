package poseidon

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// matrix is a square matrix; m[i][j] is row i, column j. States are row vectors: a
// layer takes v to vM.
type matrix [][]fr.Element

func newMatrix(n int) matrix {
	m := make(matrix, n)
	for i := range m {
		m[i] = make([]fr.Element, n)
	}
	return m
}

func (m matrix) clone() matrix {
	c := newMatrix(len(m))
	for i := range m {
		copy(c[i], m[i])
	}
	return c
}

// apply returns vM.
func (m matrix) apply(v []fr.Element) []fr.Element {
	out := make([]fr.Element, len(m))
	var p fr.Element
	for j := range out {
		for i := range m {
			out[j].Add(&out[j], p.Mul(&v[i], &m[i][j]))
		}
	}
	return out
}

// mul returns the product m x.
func (m matrix) mul(x matrix) matrix {
	out := make(matrix, len(m))
	for i := range m {
		out[i] = x.apply(m[i])
	}
	return out
}

// minor returns m without its first row and column.
func (m matrix) minor() matrix {
	out := newMatrix(len(m) - 1)
	for i := range out {
		copy(out[i], m[i+1][1:])
	}
	return out
}

// inverse returns m^-1 by Gauss-Jordan elimination. The matrices of this package are
// invertible by construction; one that is not is a bug, and panics.
func (m matrix) inverse() matrix {
	a, inv := m.clone(), newMatrix(len(m))
	for i := range inv {
		inv[i][i].SetOne()
	}
	var f, p fr.Element
	for c := range a {
		pivot := c
		for pivot < len(a) && a[pivot][c].IsZero() {
			pivot++
		}
		if pivot == len(a) {
			panic("poseidon: singular matrix")
		}
		a[c], a[pivot] = a[pivot], a[c]
		inv[c], inv[pivot] = inv[pivot], inv[c]
		f.Inverse(&a[c][c])
		for j := range a {
			a[c][j].Mul(&a[c][j], &f)
			inv[c][j].Mul(&inv[c][j], &f)
		}
		for i := range a {
			if i == c {
				continue
			}
			f = a[i][c]
			for j := range a {
				a[i][j].Sub(&a[i][j], p.Mul(&f, &a[c][j]))
				inv[i][j].Sub(&inv[i][j], p.Mul(&f, &inv[c][j]))
			}
		}
	}
	return inv
}

// cauchy returns the MDS matrix of width t: entry (i, j) is 1/(i + j + t).
func cauchy(t int) matrix {
	m := newMatrix(t)
	for i := range m {
		for j := range m[i] {
			m[i][j].SetUint64(uint64(i + j + t))
			m[i][j].Inverse(&m[i][j])
		}
	}
	return m
}

// SparseMatrix is the linear layer of a partial round after the factorisation of the
// paper's appendix B: its first column is WHat, its first row WHat[0] and then VRest,
// and the rest is the identity.
type SparseMatrix struct {
	WHat  []fr.Element // Width entries
	VRest []fr.Element // Width-1 entries
}

// factor splits m into prime and sparse with m = prime * sparse, where prime leaves
// the first element of a state alone.
func factor(m matrix) (prime matrix, sparse SparseMatrix) {
	t := len(m)
	prime = newMatrix(t)
	prime[0][0].SetOne()
	w := make([]fr.Element, t-1)
	for i := 1; i < t; i++ {
		copy(prime[i][1:], m[i][1:])
		w[i-1] = m[i][0]
	}
	sparse.VRest = append(sparse.VRest, m[0][1:]...)
	// The column below the corner is (minor of m)^-1 times w as a column.
	sparse.WHat = append(sparse.WHat, m[0][0])
	var p fr.Element
	for _, row := range m.minor().inverse() {
		var sum fr.Element
		for j := range row {
			sum.Add(&sum, p.Mul(&row[j], &w[j]))
		}
		sparse.WHat = append(sparse.WHat, sum)
	}
	return prime, sparse
}

// sparseLayers replaces the MDS matrix of rounds partial rounds by a sparse one each,
// in the order of the rounds. What is left over, preSparse, takes the place of the MDS
// matrix before the first of them.
func sparseLayers(mds matrix, rounds int) (preSparse matrix, layers []SparseMatrix) {
	layers = make([]SparseMatrix, rounds)
	preSparse = mds
	for r := rounds - 1; r >= 0; r-- {
		var prime matrix
		prime, layers[r] = factor(preSparse)
		preSparse = mds.mul(prime)
	}
	return preSparse, layers
}
