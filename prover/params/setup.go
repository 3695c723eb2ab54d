package params

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"runtime"
	"time"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/msm"
)

// SetupReport says what SetupInsecure wrote.
type SetupReport struct {
	ParamsPath, VKPath, LabelPath string
	ParamsBytes, VKBytes          int64
	ParamsSHA256, VKSHA256        string // hex
	Elapsed                       time.Duration
}

// SetupInsecure makes development parameters of the circuit from the published
// toxic waste and writes three files to dir: the parameters, the verifying key
// and a label that says how insecure they are. Equal circuits give equal files,
// and the same that bellperson's generate_parameters gives for that waste.
//
// A file appears under its final name only once it is complete, the label
// first. Development parameters that are there already are replaced; anything
// else under these names is left alone and is an *Error.
//
// progress, if not nil, is told how many of all points have been made.
func (s Set) SetupInsecure(ctx context.Context, circuit *groth16.Circuit, dir string, progress func(done, total int)) (*SetupReport, error) {
	start := time.Now()
	r := &SetupReport{ParamsPath: s.ParamsPath(dir), VKPath: s.VKPath(dir), LabelPath: s.LabelPath(dir)}
	for _, path := range []string{r.ParamsPath, r.VKPath} {
		if err := refuseToReplace(path); err != nil {
			return nil, err
		}
	}
	g, err := newGenerator(ctx, circuit, progress)
	if err != nil {
		return nil, fmt.Errorf("setting up %s: %w", s.ID, err)
	}
	vk, err := g.verifyingKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("setting up %s: %w", s.ID, err)
	}
	vkEncoded := AppendVK(nil, vk)
	sum := sha256.Sum256(vkEncoded)
	r.VKBytes, r.VKSHA256 = int64(len(vkEncoded)), hex.EncodeToString(sum[:])

	err = writeFile(r.ParamsPath, func(w io.Writer) error {
		out := &hashingWriter{w: bufio.NewWriterSize(w, 1<<20), sum: sha256.New()}
		if err := g.write(ctx, out, vkEncoded); err != nil {
			return err
		}
		if err := out.w.Flush(); err != nil {
			return fileError(r.ParamsPath, err)
		}
		r.ParamsBytes, r.ParamsSHA256 = out.n, hex.EncodeToString(out.sum.Sum(nil))

		// Neither parameters nor key are ever there without their label.
		text, err := s.label(r)
		if err != nil {
			return err
		}
		if err := writeBytes(r.LabelPath, text); err != nil {
			return err
		}
		return writeBytes(r.VKPath, vkEncoded)
	})
	if err != nil {
		var typed *Error
		if errors.As(err, &typed) {
			return nil, err
		}
		return nil, fmt.Errorf("setting up %s: %w", s.ID, err)
	}
	r.Elapsed = time.Since(start)
	return r, nil
}

// refuseToReplace returns an error if path holds anything but development
// parameters.
func refuseToReplace(path string) error {
	insecure, err := IsInsecure(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && insecure {
		return nil
	}
	return &Error{
		Path: path, Err: err,
		Reason: "exists and is not a development file",
		Remedy: "development parameters never replace others: choose another directory, or remove the file",
	}
}

func writeBytes(path string, b []byte) error {
	return writeFile(path, func(w io.Writer) error {
		if _, err := w.Write(b); err != nil {
			return fileError(path, err)
		}
		return nil
	})
}

// hashingWriter writes, hashes and counts.
type hashingWriter struct {
	w   *bufio.Writer
	sum hash.Hash
	n   int64
}

func (h *hashingWriter) Write(b []byte) (int, error) {
	h.sum.Write(b)
	h.n += int64(len(b))
	return h.w.Write(b)
}

type (
	fixedBaseG1 = *msm.FixedBase[bls12381.G1Affine, bls12381.G1Jac]
	fixedBaseG2 = *msm.FixedBase[bls12381.G2Affine, bls12381.G2Jac]
)

// generator makes the points of a proving key, [Groth16, section 3.2].
type generator struct {
	circuit *groth16.Circuit
	waste   *toxicWaste
	qap     *qap
	inputs  int
	g1      fixedBaseG1 // the generators' multiples
	g2      fixedBaseG2

	progress    func(done, total int)
	done, total int
}

func newGenerator(ctx context.Context, circuit *groth16.Circuit, progress func(done, total int)) (*generator, error) {
	g := &generator{circuit: circuit, waste: devWaste(), inputs: circuit.System.NumInputs(), progress: progress}
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
	_, _, g1, g2 := bls12381.Generators()
	inG2 := circuit.QueryLen(groth16.QueryBG2)
	if g.g1, err = msm.NewFixedBaseG1(ctx, &g1, g.total-inG2, 0); err != nil {
		return nil, err
	}
	if g.g2, err = msm.NewFixedBaseG2(ctx, &g2, inG2, 0); err != nil {
		return nil, err
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

// external fills dst with (beta·u_i + alpha·v_i + w_i)(tau)·factor for the
// variables from on: the exponents of IC and L.
func (g *generator) external(dst []fr.Element, from int, factor *fr.Element) {
	for k := range dst {
		i := from + k
		var t fr.Element
		dst[k].Mul(&g.qap.a[i], &g.waste.beta)
		t.Mul(&g.qap.b[i], &g.waste.alpha)
		dst[k].Add(&dst[k], &t)
		dst[k].Add(&dst[k], &g.qap.c[i])
		dst[k].Mul(&dst[k], factor)
	}
}

func (g *generator) verifyingKey(ctx context.Context) (*groth16.VerifyingKey, error) {
	vk := g.waste.header()
	var gammaInverse fr.Element
	gammaInverse.Inverse(&g.waste.gamma)
	exponents := make([]fr.Element, g.inputs)
	g.external(exponents, 0, &gammaInverse)
	vk.IC = make([]bls12381.G1Affine, g.inputs)
	if err := g.g1.Multiply(ctx, vk.IC, exponents, 0); err != nil {
		return nil, err
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

// write writes the parameter file.
func (g *generator) write(ctx context.Context, w io.Writer, vk []byte) error {
	if _, err := w.Write(vk); err != nil {
		return err
	}
	for _, q := range []func(context.Context, io.Writer) error{g.writeH, g.writeL, g.writeA, g.writeBG1, g.writeBG2} {
		if err := q(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// batch is the number of points made and written at a time.
const batch = 1 << 16

// writeH writes tau^i·(tau^n - 1)/delta·G1 for i < n-1.
func (g *generator) writeH(ctx context.Context, w io.Writer) error {
	factor := vanishing(&g.waste.tau, g.circuit.Domain)
	factor.Div(&factor, &g.waste.delta)
	return g.writeG1(ctx, w, groth16.QueryH, func(dst []fr.Element, from int) error {
		return constraint.Parallel(ctx, len(dst), qapGrain, runtime.GOMAXPROCS(0), func(lo, hi int) error {
			powersFrom(dst[lo:hi], &g.waste.tau, from+lo)
			for i := lo; i < hi; i++ {
				dst[i].Mul(&dst[i], &factor)
			}
			return nil
		})
	})
}

// writeL writes (beta·u_i + alpha·v_i + w_i)(tau)/delta·G1 for the auxiliary
// variables. None may be zero: a variable that no constraint mentions.
func (g *generator) writeL(ctx context.Context, w io.Writer) error {
	var deltaInverse fr.Element
	deltaInverse.Inverse(&g.waste.delta)
	return g.writeG1(ctx, w, groth16.QueryL, func(dst []fr.Element, from int) error {
		g.external(dst, g.inputs+from, &deltaInverse)
		for i := range dst {
			if dst[i].IsZero() {
				return fmt.Errorf("auxiliary variable %d is in no constraint", from+i)
			}
		}
		return nil
	})
}

// writeA, writeBG1 and writeBG2 write u_i(tau)·G1, v_i(tau)·G1 and v_i(tau)·G2,
// inputs first, without those that are zero.
func (g *generator) writeA(ctx context.Context, w io.Writer) error {
	return g.writeG1(ctx, w, groth16.QueryA, nonZero(g.qap.a))
}

func (g *generator) writeBG1(ctx context.Context, w io.Writer) error {
	return g.writeG1(ctx, w, groth16.QueryBG1, nonZero(g.qap.b))
}

func (g *generator) writeBG2(ctx context.Context, w io.Writer) error {
	return writeQuery(ctx, g, w, groth16.QueryBG2, g.g2, encodeG2, nonZero(g.qap.b))
}

// nonZero hands out the values that are not zero, in order.
func nonZero(values []fr.Element) func(dst []fr.Element, from int) error {
	next := 0
	return func(dst []fr.Element, _ int) error {
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

func (g *generator) writeG1(ctx context.Context, w io.Writer, q groth16.Query, exponents func(dst []fr.Element, from int) error) error {
	return writeQuery(ctx, g, w, q, g.g1, encodeG1, exponents)
}

func encodeG1(dst []byte, p *bls12381.G1Affine) { b := p.RawBytes(); copy(dst, b[:]) }
func encodeG2(dst []byte, p *bls12381.G2Affine) { b := p.RawBytes(); copy(dst, b[:]) }

// writeQuery writes a query batch by batch: exponents gives those of the points
// from on.
func writeQuery[P, J any](ctx context.Context, g *generator, w io.Writer, q groth16.Query,
	base *msm.FixedBase[P, J], encode func([]byte, *P),
	exponents func(dst []fr.Element, from int) error,
) error {
	n := g.circuit.QueryLen(q)
	var count [countBytes]byte
	binary.BigEndian.PutUint32(count[:], uint32(n))
	if _, err := w.Write(count[:]); err != nil {
		return err
	}
	size := q.PointBytes()
	scalars := make([]fr.Element, min(n, batch))
	points := make([]P, len(scalars))
	encoded := make([]byte, len(scalars)*size)
	for from := 0; from < n; from += batch {
		k := min(batch, n-from)
		if err := exponents(scalars[:k], from); err != nil {
			return fmt.Errorf("query %s: %w", q, err)
		}
		if err := base.Multiply(ctx, points[:k], scalars[:k], 0); err != nil {
			return fmt.Errorf("query %s: %w", q, err)
		}
		err := constraint.Parallel(ctx, k, decodeGrain, runtime.GOMAXPROCS(0), func(lo, hi int) error {
			for i := lo; i < hi; i++ {
				encode(encoded[i*size:], &points[i])
			}
			return nil
		})
		if err != nil {
			return err
		}
		if _, err := w.Write(encoded[:k*size]); err != nil {
			return err
		}
		g.report(k)
	}
	return nil
}
