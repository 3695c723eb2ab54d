package params

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
)

// cubic is x³ + x + 5 = y with y public, in a loop of n squarings before it: a
// circuit of n+3 constraints in which some variables are in A only, some in
// both A and B, and one in C only.
func cubic(t testing.TB, n int) *groth16.Circuit {
	t.Helper()
	b := constraint.NewBuilder()
	y := b.AllocInput()
	x := b.Alloc()
	for range n {
		next := b.Alloc()
		b.Enforce(constraint.Lin(x), constraint.Lin(x), constraint.Lin(next))
		x = next
	}
	square, cube := b.Alloc(), b.Alloc()
	one := fr.One()
	b.Enforce(constraint.Lin(x), constraint.Lin(x), constraint.Lin(square))
	b.Enforce(constraint.Lin(square), constraint.Lin(x), constraint.Lin(cube))
	sum := constraint.Lin(cube).Plus(x, one).Plus(constraint.One, fr.NewElement(5))
	b.Enforce(sum, constraint.Lin(constraint.One), constraint.Lin(y))
	c, err := groth16.NewCircuit(b.Finish())
	require.NoError(t, err)
	return c
}

var testSet = Set{ID: "test-set", Kind: "winning-post", SectorSize: "2KiB"}

// setup writes development parameters of a small circuit to a new directory.
func setup(t testing.TB, n int) (dir string, circuit *groth16.Circuit, r *SetupReport) {
	t.Helper()
	dir = t.TempDir()
	circuit = cubic(t, n)
	r, err := testSet.SetupInsecure(t.Context(), circuit, dir, nil, nil)
	require.NoError(t, err)
	return dir, circuit, r
}

// reference is what bellperson wrote for a circuit of Filecoin's.
type reference struct {
	A            int    `json:"a"`
	BG1          int    `json:"b_g1"`
	BG2          int    `json:"b_g2"`
	H            int    `json:"h"`
	IC           int    `json:"ic"`
	L            int    `json:"l"`
	ID           string `json:"parameter_set"`
	ParamsBytes  int64  `json:"params_bytes"`
	ParamsSHA256 string `json:"params_sha256"`
	VKBytes      int    `json:"vk_bytes"`
	VKSHA256     string `json:"vk_sha256"`
}

func loadReference(t testing.TB, name string) reference {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	var r reference
	require.NoError(t, json.Unmarshal(b, &r))
	return r
}

// bellperson's verifying keys are read, recognised as development ones, and
// written again to the same bytes.
func TestReferenceVK(t *testing.T) {
	for _, name := range []string{"winning-2KiB", "window-2KiB"} {
		t.Run(name, func(t *testing.T) {
			ref := loadReference(t, name)
			set := Set{ID: ref.ID}
			vk, err := set.ReadVK(t.Context(), "testdata")
			require.NoError(t, err)
			require.Len(t, vk.IC, ref.IC)

			raw, err := os.ReadFile(set.VKPath("testdata"))
			require.NoError(t, err)
			require.Len(t, raw, ref.VKBytes)
			require.Equal(t, raw, AppendVK(nil, vk))

			insecure, err := IsInsecure(set.VKPath("testdata"))
			require.NoError(t, err)
			require.True(t, insecure)
		})
	}
}

// What setup writes is read again: structure, points and key agree with the
// exponents they were made from.
func TestSetupRoundTrip(t *testing.T) {
	dir, circuit, r := setup(t, 40)
	f, err := testSet.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	for q := range groth16.Query(groth16.NumQueries) {
		require.Equal(t, circuit.QueryLen(q), f.Len(q), q)
	}
	require.Equal(t, r.ParamsBytes, f.SizeBytes())

	vk, err := testSet.ReadVK(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, vk, f.VerifyingKey())

	// Points against exponents, computed from the definition: every matrix
	// entry times the Lagrange polynomial of its row.
	w := devWaste()
	a, b, c := naiveQAP(circuit, &w.tau)
	_, _, g1, g2 := bls12381.Generators()
	inputs := circuit.System.NumInputs()
	point := func(x fr.Element) bls12381.G1Affine {
		return *new(bls12381.G1Affine).ScalarMultiplication(&g1, x.BigInt(newInt()))
	}
	var wantA, wantB []bls12381.G1Affine
	var wantB2 []bls12381.G2Affine
	var wantL []bls12381.G1Affine
	for i := range a {
		if !a[i].IsZero() {
			wantA = append(wantA, point(a[i]))
		}
		if !b[i].IsZero() {
			wantB = append(wantB, point(b[i]))
			wantB2 = append(wantB2, *new(bls12381.G2Affine).ScalarMultiplication(&g2, b[i].BigInt(newInt())))
		}
		var e, t2 fr.Element
		e.Mul(&a[i], &w.beta)
		t2.Mul(&b[i], &w.alpha)
		e.Add(&e, &t2)
		e.Add(&e, &c[i])
		if i < inputs {
			e.Div(&e, &w.gamma)
			require.Equal(t, point(e), vk.IC[i], "IC %d", i)
		} else {
			e.Div(&e, &w.delta)
			wantL = append(wantL, point(e))
		}
	}
	var wantH []bls12381.G1Affine
	h := vanishing(&w.tau, circuit.Domain)
	h.Div(&h, &w.delta)
	for range circuit.Domain - 1 {
		wantH = append(wantH, point(h))
		h.Mul(&h, &w.tau)
	}
	for q, want := range map[groth16.Query][]bls12381.G1Affine{
		groth16.QueryH: wantH, groth16.QueryL: wantL, groth16.QueryA: wantA, groth16.QueryBG1: wantB,
	} {
		got := make([]bls12381.G1Affine, f.Len(q))
		require.NoError(t, f.ReadG1(t.Context(), q, 0, got))
		require.Equal(t, want, got, q)
		part := make([]bls12381.G1Affine, 1)
		require.NoError(t, f.ReadG1(t.Context(), q, len(want)-1, part))
		require.Equal(t, want[len(want)-1:], part, q)
		raw := make([]byte, 2*g1Bytes)
		require.NoError(t, f.ReadEncoded(t.Context(), q, 1, raw))
		second := want[1].RawBytes()
		require.Equal(t, second[:], raw[:g1Bytes], q)
	}
	got2 := make([]bls12381.G2Affine, f.Len(groth16.QueryBG2))
	require.NoError(t, f.ReadG2(t.Context(), 0, got2))
	require.Equal(t, wantB2, got2)

	// Reads beyond the end, of the wrong group, and of parts of points.
	require.Error(t, f.ReadG1(t.Context(), groth16.QueryH, f.Len(groth16.QueryH), make([]bls12381.G1Affine, 1)))
	require.Error(t, f.ReadG1(t.Context(), groth16.QueryH, -1, make([]bls12381.G1Affine, 1)))
	require.Error(t, f.ReadG1(t.Context(), groth16.QueryBG2, 0, make([]bls12381.G1Affine, 1)))
	require.Error(t, f.ReadEncoded(t.Context(), groth16.QueryH, 0, make([]byte, 95)))

	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.ReadG2(t.Context(), 0, got2), errClosed)
	_, err = f.Verify(t.Context(), nil)
	require.ErrorIs(t, err, errClosed)
}

// Two runs give the same files, and the second may replace the first.
func TestSetupIsDeterministic(t *testing.T) {
	dir, circuit, first := setup(t, 3)
	second, err := testSet.SetupInsecure(t.Context(), circuit, dir, nil, nil)
	require.NoError(t, err)
	require.Equal(t, first.ParamsSHA256, second.ParamsSHA256)
	require.Equal(t, first.VKSHA256, second.VKSHA256)
	require.ElementsMatch(t, []string{"v28-test-set.insecure", "v28-test-set.params", "v28-test-set.vk"}, names(t, dir))
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Progress counts every point once.
func TestSetupProgress(t *testing.T) {
	last, total := 0, 0
	_, err := testSet.SetupInsecure(t.Context(), cubic(t, 5), t.TempDir(), nil, func(d, n int) {
		require.Greater(t, d, last)
		last, total = d, n
	})
	require.NoError(t, err)
	require.Equal(t, total, last)
}

// smallBatches multiplies on the CPU, few scalars at a time, until a call fails.
type smallBatches struct {
	Multiplier
	calls, failAt int
}

var errMultiplier = errors.New("the card is gone")

func (m *smallBatches) Batch() int { return 7 }

func (m *smallBatches) MultiplesG1(ctx context.Context, points []byte, scalars []fr.Element) error {
	if m.calls++; m.calls == m.failAt {
		return errMultiplier
	}
	return m.Multiplier.MultiplesG1(ctx, points, scalars)
}

// The file does not depend on who makes the points, nor in what batches; if they
// cannot be made there is none.
func TestSetupWithAnotherMultiplier(t *testing.T) {
	_, circuit, want := setup(t, 100)
	cpu, err := newCPUMultiplier(t.Context(), 7, 7)
	require.NoError(t, err)
	got, err := testSet.SetupInsecure(t.Context(), circuit, t.TempDir(), &smallBatches{Multiplier: cpu}, nil)
	require.NoError(t, err)
	require.Equal(t, want.ParamsSHA256, got.ParamsSHA256)
	require.Equal(t, want.ParamsBytes, got.ParamsBytes)

	dir := t.TempDir()
	_, err = testSet.SetupInsecure(t.Context(), circuit, dir, &smallBatches{Multiplier: cpu, failAt: 20}, nil)
	require.ErrorIs(t, err, errMultiplier)
	require.Empty(t, names(t, dir))
}

// A setup that fails or is cancelled leaves nothing behind.
func TestSetupLeavesNothingHalf(t *testing.T) {
	t.Run("cancelled while writing", func(t *testing.T) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		_, err := testSet.SetupInsecure(ctx, cubic(t, 5), dir, nil, func(int, int) {
			if calls++; calls == 3 {
				require.Len(t, names(t, dir), 1) // the temporary file
				cancel()
			}
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, names(t, dir))
	})
	t.Run("variable in no constraint", func(t *testing.T) {
		dir := t.TempDir()
		b := constraint.NewBuilder()
		x := b.Alloc()
		b.Alloc()
		b.Enforce(constraint.Lin(x), constraint.Lin(x), constraint.Lin(x))
		circuit, err := groth16.NewCircuit(b.Finish())
		require.NoError(t, err)
		_, err = testSet.SetupInsecure(t.Context(), circuit, dir, nil, nil)
		require.ErrorContains(t, err, "auxiliary variable 1 is in no constraint")
		require.Empty(t, names(t, dir))
	})
	t.Run("no directory", func(t *testing.T) {
		_, err := testSet.SetupInsecure(t.Context(), cubic(t, 5), filepath.Join(t.TempDir(), "none"), nil, nil)
		require.ErrorIs(t, err, fs.ErrNotExist)
		var typed *Error
		require.ErrorAs(t, err, &typed)
	})
}

// Development parameters never replace files that are not development ones.
func TestSetupKeepsOtherFiles(t *testing.T) {
	dir, circuit, _ := setup(t, 3)
	for _, path := range []string{testSet.ParamsPath(dir), testSet.VKPath(dir)} {
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		foreign := asForeign(t, good)
		require.NoError(t, os.WriteFile(path, foreign, 0o644))
		insecure, err := IsInsecure(path)
		require.NoError(t, err)
		require.False(t, insecure)

		_, err = testSet.SetupInsecure(t.Context(), circuit, dir, nil, nil)
		var typed *Error
		require.ErrorAs(t, err, &typed)
		require.Equal(t, path, typed.Path)
		require.NotEmpty(t, typed.Remedy)
		still, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, foreign, still)
		require.NoError(t, os.WriteFile(path, good, 0o644))
	}
}

// asForeign replaces the header of a key by points of other waste.
func asForeign(t testing.TB, b []byte) []byte {
	t.Helper()
	other := &toxicWaste{
		alpha: labelled("other: alpha"), beta: labelled("other: beta"),
		gamma: fr.One(), delta: labelled("other: delta"),
	}
	vk := other.header()
	out := bytes.Clone(b)
	copy(out, AppendVK(nil, &vk)[:vkHeaderBytes-countBytes])
	return out
}

// Development parameters are recognised by any one of their points, under any
// name and without their label.
func TestIsInsecure(t *testing.T) {
	dir, _, r := setup(t, 3)
	var l label
	b, err := os.ReadFile(r.LabelPath)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &l))
	require.True(t, l.Insecure)
	require.Equal(t, r.ParamsSHA256, l.ParamsSHA256)
	require.Equal(t, r.VKSHA256, l.VKSHA256)

	raw, err := os.ReadFile(r.ParamsPath)
	require.NoError(t, err)
	copied := filepath.Join(dir, "copied")
	require.NoError(t, os.WriteFile(copied, raw, 0o600))
	insecure, err := IsInsecure(copied)
	require.NoError(t, err)
	require.True(t, insecure)

	dev := devHeader()
	other := (&toxicWaste{alpha: fr.NewElement(2), beta: fr.NewElement(3), gamma: fr.One(), delta: fr.NewElement(4)}).header()
	require.False(t, IsInsecureVK(&other))
	for name, change := range map[string]func(vk *groth16.VerifyingKey){
		"alpha": func(vk *groth16.VerifyingKey) { vk.AlphaG1 = dev.AlphaG1 },
		"beta1": func(vk *groth16.VerifyingKey) { vk.BetaG1 = dev.BetaG1 },
		"beta2": func(vk *groth16.VerifyingKey) { vk.BetaG2 = dev.BetaG2 },
		"gamma": func(vk *groth16.VerifyingKey) { vk.GammaG2 = dev.GammaG2 },
		"delt1": func(vk *groth16.VerifyingKey) { vk.DeltaG1 = dev.DeltaG1 },
		"delt2": func(vk *groth16.VerifyingKey) { vk.DeltaG2 = dev.DeltaG2 },
	} {
		vk := other
		change(&vk)
		require.True(t, IsInsecureVK(&vk), name)
	}

	require.NoError(t, os.WriteFile(copied, raw[:100], 0o600))
	_, err = IsInsecure(copied)
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.Contains(t, typed.Reason, "found 100")
}

// boundaries are the offsets at which the parts of a parameter file begin.
func boundaries(f *File) []int64 {
	b := []int64{0, g1Bytes, 2 * g1Bytes, 2*g1Bytes + g2Bytes, 2*g1Bytes + 2*g2Bytes, 3*g1Bytes + 2*g2Bytes, vkHeaderBytes - countBytes, vkHeaderBytes}
	for q := range groth16.Query(groth16.NumQueries) {
		offset, n := f.queries[q].offset, int64(f.queries[q].n)
		size := int64(q.PointBytes())
		b = append(b, offset-countBytes, offset, offset+size, offset+(n-1)*size)
	}
	return b
}

// A file cut off anywhere is refused by name, with expected and found sizes;
// so is one with anything after its end.
func TestTruncation(t *testing.T) {
	dir, _, r := setup(t, 12)
	raw, err := os.ReadFile(r.ParamsPath)
	require.NoError(t, err)
	f, err := Open(r.ParamsPath)
	require.NoError(t, err)
	defer f.Close()
	path := filepath.Join(dir, "cut.params")
	refused := func(b []byte) *Error {
		t.Helper()
		require.NoError(t, os.WriteFile(path, b, 0o644))
		_, err := Open(path)
		var typed *Error
		require.ErrorAs(t, err, &typed)
		require.Equal(t, path, typed.Path)
		require.NotEmpty(t, typed.Remedy)
		require.Regexp(t, `(expected|need).* \d+ bytes, found \d+`, typed.Reason)
		return typed
	}
	for _, offset := range boundaries(f) {
		for _, n := range []int64{offset - 1, offset, offset + 1} {
			if n < 0 {
				continue
			}
			e := refused(raw[:n])
			require.Contains(t, e.Error(), path)
		}
	}
	e := refused(raw[:len(raw)-1])
	require.Contains(t, e.Error(), path)
	e = refused(append(bytes.Clone(raw), 0))
	require.Equal(t, "expected "+itoa(len(raw))+" bytes, found "+itoa(len(raw)+1), e.Reason)

	// The key files, too.
	vk, err := os.ReadFile(r.VKPath)
	require.NoError(t, err)
	for n := range len(vk) {
		require.NoError(t, os.WriteFile(path, vk[:n], 0o644))
		_, err := ReadVK(t.Context(), path)
		var typed *Error
		require.ErrorAs(t, err, &typed, "%d bytes", n)
	}
	require.NoError(t, os.WriteFile(path, append(vk, 0), 0o644))
	_, err = ReadVK(t.Context(), path)
	require.ErrorContains(t, err, "found "+itoa(len(vk)+1))
}

// Counts that account for all bytes, but not for a proving key, are refused.
func TestWrongCounts(t *testing.T) {
	dir, _, r := setup(t, 12)
	raw, err := os.ReadFile(r.ParamsPath)
	require.NoError(t, err)
	f, err := Open(r.ParamsPath)
	require.NoError(t, err)
	defer f.Close()
	path := filepath.Join(dir, "wrong.params")

	// Move the last point of H to the front of L.
	h := f.queries[groth16.QueryH]
	moved := bytes.Clone(raw)
	binary.BigEndian.PutUint32(moved[h.offset-countBytes:], uint32(h.n-1))
	end := h.offset + int64(h.n)*g1Bytes
	binary.BigEndian.PutUint32(moved[end-g1Bytes:], uint32(f.Len(groth16.QueryL)+1))
	copy(moved[end-g1Bytes+countBytes:], raw[end-g1Bytes:end])
	require.NoError(t, os.WriteFile(path, moved, 0o644))
	_, err = Open(path)
	require.ErrorContains(t, err, "one less than a power of two")

	// One point of B in G2 less.
	b2 := f.queries[groth16.QueryBG2]
	short := bytes.Clone(raw[:len(raw)-g2Bytes])
	binary.BigEndian.PutUint32(short[b2.offset-countBytes:], uint32(b2.n-1))
	require.NoError(t, os.WriteFile(path, short, 0o644))
	_, err = Open(path)
	require.ErrorContains(t, err, "in G2")

	// No IC points.
	empty := append(bytes.Clone(raw[:vkHeaderBytes-countBytes]), 0, 0, 0, 0)
	require.NoError(t, os.WriteFile(path, empty, 0o644))
	_, err = Open(path)
	require.ErrorContains(t, err, "without IC points")
}

// Missing files: the remedy is the command that makes them.
func TestMissingFile(t *testing.T) {
	dir := t.TempDir()
	for _, open := range []func() error{
		func() error { _, err := testSet.Open(dir); return err },
		func() error { _, err := testSet.ReadVK(t.Context(), dir); return err },
	} {
		err := open()
		require.ErrorIs(t, err, fs.ErrNotExist)
		var typed *Error
		require.ErrorAs(t, err, &typed)
		require.Contains(t, typed.Remedy, "interlock params setup winning-post 2KiB --insecure-dev --dir "+dir)
	}
	withPartitions := testSet
	withPartitions.Partitions = 10
	_, err := withPartitions.Open(dir)
	require.ErrorContains(t, err, "--partitions 10")

	_, err = Open(dir)
	require.ErrorContains(t, err, "not a regular file")
}

// Verify finds every kind of bad point in every part of the file, and names it.
func TestVerifyFindsBadPoints(t *testing.T) {
	dir, _, r := setup(t, 12)
	raw, err := os.ReadFile(r.ParamsPath)
	require.NoError(t, err)
	var seen int64
	report, err := Verify(t.Context(), r.ParamsPath, func(done, total int64) {
		seen = done // one thread at a time is not promised, but the last call says all
		require.Equal(t, r.ParamsBytes, total)
	})
	require.NoError(t, err)
	require.Equal(t, r.ParamsSHA256, report.SHA256)
	require.Equal(t, r.ParamsBytes, seen)
	require.True(t, report.Insecure)
	require.Len(t, report.Blake2b, 128)

	f, err := Open(r.ParamsPath)
	require.NoError(t, err)
	defer f.Close()
	path := filepath.Join(dir, "bad.params")

	var zero bls12381.G1Affine
	atInfinity := zero.RawBytes()
	jac := bls12381.GeneratePointNotInG1(fp.NewElement(5))
	outside1 := new(bls12381.G1Affine).FromJacobian(&jac).RawBytes()
	jac2 := bls12381.GeneratePointNotInG2(bls12381.E2{A0: fp.NewElement(5), A1: fp.NewElement(7)})
	outside2 := new(bls12381.G2Affine).FromJacobian(&jac2).RawBytes()
	modulus := fp.Modulus().Bytes()

	for q := range groth16.Query(groth16.NumQueries) {
		last := f.Len(q) - 1
		at := int(f.queries[q].offset) + last*q.PointBytes()
		outside := outside1[:]
		if q == groth16.QueryBG2 {
			outside = outside2[:]
		}
		for _, c := range []struct {
			with    []byte
			reason  string
			decodes bool // passes the checks of reading
		}{
			{atInfinity[:], errInfinity.Error(), false},
			{make([]byte, q.PointBytes()), errNotOnCurve.Error(), false},
			{[]byte{raw[at] | 0x80}, errFlags.Error(), false},
			{modulus, "X: ", false},
			{[]byte{raw[at], raw[at+1] ^ 1}, errNotOnCurve.Error(), true},
			{outside, errNotInGroup.Error(), true},
		} {
			bad := bytes.Clone(raw)
			copy(bad[at:], c.with)
			require.NoError(t, os.WriteFile(path, bad, 0o644))
			_, err := Verify(t.Context(), path, nil)
			var typed *Error
			require.ErrorAs(t, err, &typed)
			require.Contains(t, typed.Reason, "query "+q.String()+", point "+itoa(last)+": ")
			require.Contains(t, typed.Reason, c.reason)

			b, err := Open(path)
			require.NoError(t, err)
			if q == groth16.QueryBG2 {
				err = b.ReadG2(t.Context(), 0, make([]bls12381.G2Affine, last+1))
			} else {
				err = b.ReadG1(t.Context(), q, 0, make([]bls12381.G1Affine, last+1))
			}
			if c.decodes {
				require.NoError(t, err)
			} else {
				require.ErrorAs(t, err, &typed)
				require.Contains(t, typed.Reason, c.reason)
			}
			require.NoError(t, b.Close())
		}
	}
	// Every point of the verifying key.
	for _, at := range []int{0, g1Bytes, 2 * g1Bytes, 2*g1Bytes + g2Bytes, 2*g1Bytes + 2*g2Bytes, 3*g1Bytes + 2*g2Bytes, vkHeaderBytes, vkHeaderBytes + g1Bytes} {
		bad := bytes.Clone(raw)
		bad[at+1] ^= 1
		require.NoError(t, os.WriteFile(path, bad, 0o644))
		_, err := Verify(t.Context(), path, nil)
		require.ErrorContains(t, err, "verifying key: ")
		require.ErrorContains(t, err, errNotOnCurve.Error())
		require.NoError(t, os.WriteFile(path, bad[:f.queries[groth16.QueryH].offset-countBytes], 0o644))
		_, err = ReadVK(t.Context(), path)
		require.ErrorContains(t, err, errNotOnCurve.Error())
	}
}

// Among many points, which are tested together, the bad one is named too.
func TestVerifyNamesOneOfMany(t *testing.T) {
	_, _, r := setup(t, 2*minSubgroupBatch)
	_, err := Verify(t.Context(), r.ParamsPath, nil)
	require.NoError(t, err)
	raw, err := os.ReadFile(r.ParamsPath)
	require.NoError(t, err)
	f, err := Open(r.ParamsPath)
	require.NoError(t, err)
	defer f.Close()
	p := smallOrderG1(t)
	outside := p.RawBytes()
	const bad = 700
	copy(raw[f.queries[groth16.QueryL].offset+bad*g1Bytes:], outside[:])
	require.NoError(t, os.WriteFile(r.ParamsPath, raw, 0o644))
	_, err = f.Verify(t.Context(), nil)
	require.ErrorContains(t, err, "query L, point 700: "+errNotInGroup.Error())
}

// Any flipped bit anywhere in the points is found.
func TestVerifyFindsFlippedBits(t *testing.T) {
	dir, _, r := setup(t, 2)
	raw, err := os.ReadFile(r.ParamsPath)
	require.NoError(t, err)
	path := filepath.Join(dir, "flipped.params")
	for at := 0; at < len(raw); at += 41 {
		bad := bytes.Clone(raw)
		bad[at] ^= 1 << (at % 8)
		require.NoError(t, os.WriteFile(path, bad, 0o644))
		_, err := Verify(t.Context(), path, nil)
		var typed *Error
		require.ErrorAs(t, err, &typed, "byte %d", at)
	}
}

// A file that is cut short while it is mapped is an error, not the end of the
// process.
func TestFileCutShortWhileMapped(t *testing.T) {
	_, _, r := setup(t, 300)
	f, err := Open(r.ParamsPath)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.Truncate(r.ParamsPath, 4096))
	_, err = f.Verify(t.Context(), nil)
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.Contains(t, typed.Reason, "cut short")
	err = f.ReadG2(t.Context(), 0, make([]bls12381.G2Affine, f.Len(groth16.QueryBG2)))
	require.ErrorAs(t, err, &typed)
	require.Contains(t, typed.Reason, "cut short")
}

// Cancellation ends reading and verifying with the context's error.
func TestCancellation(t *testing.T) {
	_, _, r := setup(t, 300)
	f, err := Open(r.ParamsPath)
	require.NoError(t, err)
	defer f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.ReadG2(ctx, 0, make([]bls12381.G2Affine, f.Len(groth16.QueryBG2))), context.Canceled)
	_, err = f.Verify(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	var typed *Error
	require.False(t, errors.As(err, &typed), "cancelled, not broken")
}

func BenchmarkOpen(b *testing.B) {
	_, _, r := setup(b, 100)
	for b.Loop() {
		f, err := Open(r.ParamsPath)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadG1(b *testing.B) {
	_, _, r := setup(b, 1<<13-10)
	f, err := Open(r.ParamsPath)
	require.NoError(b, err)
	defer f.Close()
	points := make([]bls12381.G1Affine, f.Len(groth16.QueryH))
	b.SetBytes(int64(len(points)) * g1Bytes)
	for b.Loop() {
		if err := f.ReadG1(b.Context(), groth16.QueryH, 0, points); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	_, _, r := setup(b, 1<<12-10)
	b.SetBytes(r.ParamsBytes)
	for b.Loop() {
		if _, err := Verify(b.Context(), r.ParamsPath, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Property: whatever is no regular file is refused at once by name, and a key file
// is not read beyond what its header says.
func TestIrregularFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, dir, os.DevNull} {
		for name, open := range map[string]func() error{
			"parameters": func() error { _, err := Open(path); return err },
			"key":        func() error { _, err := ReadVK(t.Context(), path); return err },
			"insecure":   func() error { _, err := IsInsecure(path); return err },
		} {
			var typed *Error
			require.ErrorAs(t, open(), &typed, "%s of %s", name, path)
			require.Equal(t, path, typed.Path)
			require.Equal(t, "not a regular file", typed.Reason)
		}
	}

	_, _, r := setup(t, 12)
	require.NoError(t, os.Truncate(r.VKPath, 1<<40)) // sparse
	_, err := ReadVK(t.Context(), r.VKPath)
	require.ErrorContains(t, err, "found 1099511627776")
}
