package hosttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Operation numbers of vectors/vectors.cpp: the hundreds choose the type.
const (
	opFr, opFp, opFp2, opG1, opG2, opNTT, opEncode, opRows, opKnown = 0, 100, 200, 300, 400, 500, 600, 700, 800

	opAdd, opSub, opMul, opSquare, opNeg, opDouble, opInverse = 0, 1, 2, 3, 4, 5, 6

	opPointAdd, opPointAddProjective, opPointDouble, opPointMul, opGenerator, opDigits = 0, 1, 2, 3, 4, 5
)

// vectors collects records with the results that gnark-crypto gives, and compares them with the
// program's output.
type vectors struct {
	in, want bytes.Buffer
	names    []string
	ends     []int // where the result of record i ends in want
}

// raw is a value's bytes as they lie in memory: the form in which arrays cross to the library.
func raw[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

func (v *vectors) add(name string, op uint32, want []byte, operands ...[]byte) {
	v.in.Write(binary.LittleEndian.AppendUint32(nil, op))
	for _, o := range operands {
		v.in.Write(o)
	}
	v.want.Write(want)
	v.names = append(v.names, name)
	v.ends = append(v.ends, v.want.Len())
}

// check builds the program with g++ and runs it on the records.
func (v *vectors) check(t *testing.T) {
	t.Helper()
	// go test takes a result from its cache unless a file that the test itself read has changed.
	headers, err := filepath.Glob(filepath.Join("..", "*", "*.cuh"))
	require.NoError(t, err)
	for _, name := range append(headers, filepath.Join("..", "api", "interlock_cuda.h"), filepath.Join("vectors", "vectors.cpp")) {
		_, err := os.ReadFile(name)
		require.NoError(t, err)
	}
	program := filepath.Join(t.TempDir(), "vectors")
	build := exec.Command("g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-x", "c++",
		"-I", "..", "-o", program, filepath.Join("vectors", "vectors.cpp"))
	out, err := build.CombinedOutput()
	require.NoError(t, err, "g++ is needed to test the CUDA headers on the host:\n%s", out)

	run := exec.Command(program)
	run.Stdin = &v.in
	var stderr bytes.Buffer
	run.Stderr = &stderr
	got, err := run.Output()
	require.NoError(t, err, stderr.String())
	require.Len(t, got, v.want.Len())
	begin := 0
	for i, end := range v.ends {
		require.Equal(t, v.want.Bytes()[begin:end], got[begin:end], "record %d: %s", i, v.names[i])
		begin = end
	}
}

// element is what fr.Element, fp.Element and E2 have in common.
type element[T any] interface {
	*T
	Add(a, b *T) *T
	Sub(a, b *T) *T
	Mul(a, b *T) *T
	Square(a *T) *T
	Neg(a *T) *T
	Double(a *T) *T
	Inverse(a *T) *T
}

func fieldVectors[T any, E element[T]](v *vectors, name string, base uint32, values []T) {
	for i := range values {
		a := &values[i]
		one := func(op string, code uint32, apply func(r, a *T)) {
			var r T
			apply(&r, a)
			v.add(name+" "+op, base+code, raw(&r), raw(a))
		}
		one("square", opSquare, func(r, a *T) { E(r).Square(a) })
		one("negate", opNeg, func(r, a *T) { E(r).Neg(a) })
		one("double", opDouble, func(r, a *T) { E(r).Double(a) })
		one("inverse", opInverse, func(r, a *T) { E(r).Inverse(a) })
		for j := range values {
			b := &values[j]
			two := func(op string, code uint32, apply func(r, a, b *T)) {
				var r T
				apply(&r, a, b)
				v.add(name+" "+op, base+code, raw(&r), raw(a), raw(b))
			}
			two("add", opAdd, func(r, a, b *T) { E(r).Add(a, b) })
			two("sub", opSub, func(r, a, b *T) { E(r).Sub(a, b) })
			two("mul", opMul, func(r, a, b *T) { E(r).Mul(a, b) })
		}
	}
}

const randomValues = 60

// TestFields: the operations of Fr, Fp and Fp2 agree with gnark-crypto on edge values and at random.
func TestFields(t *testing.T) {
	var v vectors

	frs := make([]fr.Element, 0, randomValues+5)
	for _, edge := range edges(fr.Modulus()) {
		var e fr.Element
		e.SetBigInt(edge)
		frs = append(frs, e)
	}
	frs = append(frs, fr.Element{1}) // the smallest Montgomery form
	for range randomValues {
		var e fr.Element
		e.MustSetRandom()
		frs = append(frs, e)
	}
	fieldVectors(&v, "Fr", opFr, frs)

	fps := make([]fp.Element, 0, randomValues+5)
	for _, edge := range edges(fp.Modulus()) {
		var e fp.Element
		e.SetBigInt(edge)
		fps = append(fps, e)
	}
	fps = append(fps, fp.Element{1})
	for range randomValues {
		var e fp.Element
		e.MustSetRandom()
		fps = append(fps, e)
	}
	fieldVectors(&v, "Fp", opFp, fps)

	var e2s []bls12381.E2
	for i := range fps {
		e2s = append(e2s, bls12381.E2{A0: fps[i], A1: fps[len(fps)-1-i]})
	}
	e2s = append(e2s, bls12381.E2{}, bls12381.E2{A0: fps[1]}, bls12381.E2{A1: fps[1]})
	fieldVectors(&v, "Fp2", opFp2, e2s)

	v.check(t)
}

// TestKnownFactors: products with factors that are kept in pieces agree with gnark-crypto, also for
// numbers that are not reduced.
func TestKnownFactors(t *testing.T) {
	p := fr.Modulus()
	words := func(x *big.Int) (w fr.Element) {
		for i := range w {
			w[i] = new(big.Int).Rsh(x, uint(64*i)).Uint64()
		}
		return w
	}
	full := new(big.Int).Lsh(big.NewInt(1), 256)
	numbers := edges(p)
	numbers = append(numbers, p, new(big.Int).Sub(new(big.Int).Lsh(p, 1), big.NewInt(1)), new(big.Int).Sub(full, big.NewInt(1)))
	for i := range 4 { // a piece of ones
		ones := new(big.Int).SetUint64(^uint64(0))
		numbers = append(numbers, ones.Lsh(ones, uint(64*i)))
	}
	for range randomValues {
		x, err := rand.Int(rand.Reader, full)
		require.NoError(t, err)
		numbers = append(numbers, x)
	}
	var v vectors
	for _, a := range numbers {
		w := words(new(big.Int).Mod(a, p))
		for _, b := range numbers {
			x, reduced := words(b), words(new(big.Int).Mod(b, p))
			var product fr.Element
			product.Mul(&w, &reduced)
			v.add("known factor", opKnown, raw(&product), raw(&w), raw(&x))
		}
	}
	v.check(t)
}

// edges are 0, 1, 2, p-1, (p-1)/2 and all ones below p.
func edges(p *big.Int) []*big.Int {
	one := big.NewInt(1)
	minus := new(big.Int).Sub(p, one)
	ones := new(big.Int).Sub(new(big.Int).Lsh(one, uint(p.BitLen()-1)), one)
	return []*big.Int{new(big.Int), one, big.NewInt(2), minus, new(big.Int).Rsh(minus, 1), ones}
}

// TestGroups: additions, doublings and multiples in G1 and G2 agree with gnark-crypto, also where the
// operands are equal, opposite or infinity.
func TestGroups(t *testing.T) {
	var v vectors
	_, _, g1, g2 := bls12381.Generators()

	p1 := []bls12381.G1Affine{{}, g1}
	p2 := []bls12381.G2Affine{{}, g2}
	scalars := []fr.Element{{}, fr.One()}
	for range 4 {
		var k fr.Element
		k.MustSetRandom()
		scalars = append(scalars, k)
		var kb big.Int
		k.BigInt(&kb)
		var a, na bls12381.G1Affine
		a.ScalarMultiplication(&g1, &kb)
		na.Neg(&a)
		p1 = append(p1, a, na)
		var b, nb bls12381.G2Affine
		b.ScalarMultiplication(&g2, &kb)
		nb.Neg(&b)
		p2 = append(p2, b, nb)
	}
	var minusOne fr.Element
	one := fr.One()
	minusOne.Neg(&one)
	scalars = append(scalars, minusOne)
	// Digits at their limits: 0x8000 in every window, and 0x7fff, below the highest.
	for _, word := range [][2]byte{{0x80, 0x00}, {0x7f, 0xff}} {
		var b [fr.Bytes]byte
		for i := 2; i < len(b); i += 2 {
			b[i], b[i+1] = word[0], word[1]
		}
		var k fr.Element
		k.SetBytes(b[:])
		scalars = append(scalars, k)
	}
	three := big.NewInt(3)

	v.add("G1 generator", opG1+opGenerator, raw(&g1))
	for i := range p1 {
		var d bls12381.G1Affine
		d.Double(&p1[i])
		v.add("G1 double", opG1+opPointDouble, raw(&d), raw(&p1[i]))
		for j := range p1 {
			var s, s3 bls12381.G1Affine
			s.Add(&p1[i], &p1[j])
			s3.ScalarMultiplication(&s, three)
			v.add("G1 add", opG1+opPointAdd, raw(&s), raw(&p1[i]), raw(&p1[j]))
			v.add("G1 add, projective", opG1+opPointAddProjective, raw(&s3), raw(&p1[i]), raw(&p1[j]))
		}
		for j := range scalars {
			var kb big.Int
			scalars[j].BigInt(&kb)
			var m bls12381.G1Affine
			m.ScalarMultiplication(&p1[i], &kb)
			v.add("G1 multiple", opG1+opPointMul, raw(&m), raw(&p1[i]), raw(&scalars[j]))
			v.add("G1 multiple by digits", opG1+opDigits, raw(&m), raw(&p1[i]), raw(&scalars[j]))
		}
	}

	v.add("G2 generator", opG2+opGenerator, raw(&g2))
	for i := range p2 {
		var d bls12381.G2Affine
		d.Double(&p2[i])
		v.add("G2 double", opG2+opPointDouble, raw(&d), raw(&p2[i]))
		for j := range p2 {
			var s, s3 bls12381.G2Affine
			s.Add(&p2[i], &p2[j])
			s3.ScalarMultiplication(&s, three)
			v.add("G2 add", opG2+opPointAdd, raw(&s), raw(&p2[i]), raw(&p2[j]))
			v.add("G2 add, projective", opG2+opPointAddProjective, raw(&s3), raw(&p2[i]), raw(&p2[j]))
		}
		for j := range scalars {
			var kb big.Int
			scalars[j].BigInt(&kb)
			var m bls12381.G2Affine
			m.ScalarMultiplication(&p2[i], &kb)
			v.add("G2 multiple", opG2+opPointMul, raw(&m), raw(&p2[i]), raw(&scalars[j]))
			v.add("G2 multiple by digits", opG2+opDigits, raw(&m), raw(&p2[i]), raw(&scalars[j]))
		}
	}
	v.check(t)
}

// TestTransformConstants: the root of unity and the coset shift are those of gnark-crypto's domains
// (and of bellman's, which a proof's bytes depend on).
func TestTransformConstants(t *testing.T) {
	var v vectors
	root, err := fft.Generator(1 << 32)
	require.NoError(t, err)
	shift := fft.GeneratorFullMultiplicativeGroup()
	v.add("root of unity, generator", opNTT, append(bytes.Clone(raw(&root)), raw(&shift)...))
	v.check(t)
}

// TestEncoding: coordinates are written as gnark-crypto writes them into a point's uncompressed form.
func TestEncoding(t *testing.T) {
	var v vectors
	for _, edge := range edges(fp.Modulus()) {
		var e fp.Element
		e.SetBigInt(edge)
		b := e.Bytes()
		v.add("coordinate", opEncode, b[:], raw(&e))
	}
	for range randomValues {
		var e fp.Element
		e.MustSetRandom()
		b := e.Bytes()
		v.add("coordinate", opEncode, b[:], raw(&e))
	}
	v.check(t)
}

// table is an array as a record has it: its length, then its elements as they lie in memory.
func table[T any](values []T) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(values)))
	for i := range values {
		b = append(b, raw(&values[i])...)
	}
	return b
}

// sampleSystem has templates within templates, ports of every kind, and linear combinations of none to a
// hundred terms.
func sampleSystem() *constraint.System {
	var three, minusOne fr.Element
	three.SetUint64(3)
	minusOne.SetInt64(-1)
	b := constraint.NewBuilder()
	ports := []constraint.Var{b.AllocInput(), b.AllocInput(), b.AllocBit(), b.Alloc()}
	inner := func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
		full, bit, input := b.Alloc(), b.AllocBit(), b.AllocInput()
		var long constraint.LC
		for i := range 100 {
			var c fr.Element
			c.SetUint64(1 << (i % 40))
			long = long.Plus(b.AllocBit(), c)
		}
		b.Enforce(long, constraint.Lin(constraint.One).Plus(input, three), constraint.Lin(full))
		b.Enforce(constraint.Lin(bit), constraint.Const(three).Plus(bit, minusOne), nil)
		for _, p := range ports {
			b.Enforce(constraint.Lin(p).Plus(full, three), constraint.Lin(p).Plus(constraint.One, minusOne), constraint.Lin(p).Plus(bit, three))
		}
		return []constraint.Var{bit, full}, nil
	}
	outer := func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
		own := b.Alloc()
		outs, _ := b.Call("inner", ports, inner)
		b.Enforce(constraint.Lin(own), constraint.Lin(outs[0]).Plus(ports[0], three), constraint.Lin(outs[1]).Plus(own, minusOne))
		return outs, nil
	}
	for range 5 {
		outs, _ := b.Call("outer", ports, outer)
		ports = []constraint.Var{ports[1], ports[0], outs[0], outs[1]}
		b.Enforce(nil, constraint.Lin(outs[1]), constraint.Lin(ports[0]))
		b.Call("inner", ports, inner)
	}
	return b.Finish()
}

// TestRows: rows of a constraint system in flat form have the values that package constraint computes.
func TestRows(t *testing.T) {
	s := sampleSystem()
	w := witness.New(s.Layout())
	for _, values := range [][]fr.Element{w.Inputs[1:], w.Full} {
		for i := range values {
			values[i].MustSetRandom()
		}
	}
	for i := range s.NumAux() {
		if s.Layout().IsBit(i) && i*i%7 < 3 {
			w.Bits[i/64] |= 1 << (i % 64)
		}
	}
	n := s.NumConstraints()
	var want []byte
	var values [3][]fr.Element
	for m := range values {
		values[m] = make([]fr.Element, n)
	}
	require.NoError(t, s.Evaluate(context.Background(), w, values[0], values[1], values[2], 1))
	for _, v := range values {
		want = append(want, table(v)[4:]...)
	}
	f := s.Flat()
	words := make([]uint32, 0, 2*len(w.Bits))
	for _, bits := range w.Bits {
		words = append(words, uint32(bits), uint32(bits>>32))
	}
	var v vectors
	v.add("rows", opRows, want, binary.LittleEndian.AppendUint32(nil, uint32(n)),
		table(f.Templates), table(f.Instances), table(f.Ports), table(f.RowPlaces), table(f.RowEnds),
		table(f.Terms), table(f.Coefficients), table(w.Inputs), table(words), table(w.Full))
	v.check(t)
}
