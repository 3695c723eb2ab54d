package params

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
)

// vkHeaderBytes is the length of a verifying key up to its IC points: alpha and
// beta in G1, beta and gamma in G2, delta in G1 and G2, and the count.
const vkHeaderBytes = 3*g1Bytes + 3*g2Bytes + countBytes

// AppendVK appends the encoding of vk, which is bellperson's
// VerifyingKey::write: the content of a .vk file and the beginning of a
// parameter file.
func AppendVK(b []byte, vk *groth16.VerifyingKey) []byte {
	g1 := func(p *bls12381.G1Affine) { raw := p.RawBytes(); b = append(b, raw[:]...) }
	g2 := func(p *bls12381.G2Affine) { raw := p.RawBytes(); b = append(b, raw[:]...) }
	g1(&vk.AlphaG1)
	g1(&vk.BetaG1)
	g2(&vk.BetaG2)
	g2(&vk.GammaG2)
	g1(&vk.DeltaG1)
	g2(&vk.DeltaG2)
	b = binary.BigEndian.AppendUint32(b, uint32(len(vk.IC)))
	for i := range vk.IC {
		g1(&vk.IC[i])
	}
	return b
}

// decoders turn encodings into points, with or without checks.
type (
	decoderG1 func(*bls12381.G1Affine, []byte) error
	decoderG2 func(*bls12381.G2Affine, []byte) error
)

// parseVKHeader decodes the six points at the beginning of a verifying key.
func parseVKHeader(b []byte, decodeG1 decoderG1, decodeG2 decoderG2) (*groth16.VerifyingKey, error) {
	vk := &groth16.VerifyingKey{}
	for _, p := range []struct {
		name string
		g1   *bls12381.G1Affine
		g2   *bls12381.G2Affine
	}{
		{name: "alpha", g1: &vk.AlphaG1},
		{name: "beta", g1: &vk.BetaG1},
		{name: "beta", g2: &vk.BetaG2},
		{name: "gamma", g2: &vk.GammaG2},
		{name: "delta", g1: &vk.DeltaG1},
		{name: "delta", g2: &vk.DeltaG2},
	} {
		if p.g1 != nil {
			if err := decodeG1(p.g1, b); err != nil {
				return nil, fmt.Errorf("%s in G1: %w", p.name, err)
			}
			b = b[g1Bytes:]
		} else {
			if err := decodeG2(p.g2, b); err != nil {
				return nil, fmt.Errorf("%s in G2: %w", p.name, err)
			}
			b = b[g2Bytes:]
		}
	}
	return vk, nil
}

// parseVK decodes the verifying key of exactly len(b) bytes.
func parseVK(ctx context.Context, b []byte, decodeG1 decoderG1, decodeG2 decoderG2) (*groth16.VerifyingKey, error) {
	vk, err := parseVKHeader(b, decodeG1, decodeG2)
	if err != nil {
		return nil, err
	}
	points := b[vkHeaderBytes:]
	vk.IC = make([]bls12381.G1Affine, len(points)/g1Bytes)
	err = constraint.Parallel(ctx, len(vk.IC), 64, runtime.GOMAXPROCS(0), func(from, to int) error {
		return guardFault(func() error {
			for i := from; i < to; i++ {
				if err := decodeG1(&vk.IC[i], points[i*g1Bytes:]); err != nil {
					return fmt.Errorf("IC point %d: %w", i, err)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return vk, nil
}

// vkBytes returns the length of the verifying key at the beginning of b, of
// which size bytes exist, or a reason why it cannot be one.
func vkBytes(b []byte, size int64) (int64, string) {
	if size < vkHeaderBytes {
		return 0, fmt.Sprintf("truncated within the verifying key: expected at least %d bytes, found %d", vkHeaderBytes, size)
	}
	ic := int64(binary.BigEndian.Uint32(b[vkHeaderBytes-countBytes:]))
	if ic == 0 {
		return 0, "verifying key without IC points"
	}
	n := vkHeaderBytes + ic*g1Bytes
	if size < n {
		return 0, fmt.Sprintf("truncated within the verifying key: %d IC points need %d bytes, found %d", ic, n, size)
	}
	return n, ""
}

// ReadVK reads a .vk file. Every point is checked completely, since a verifier
// relies on nothing else. Errors are of type *Error.
func ReadVK(ctx context.Context, path string) (*groth16.VerifyingKey, error) {
	vk, _, err := readVK(ctx, path)
	return vk, err
}

// readVK is ReadVK, and gives the file's bytes too.
func readVK(ctx context.Context, path string) (*groth16.VerifyingKey, []byte, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	// The header says how long the whole is, before that is read.
	b := make([]byte, min(info.Size(), vkHeaderBytes))
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, nil, fileError(path, err)
	}
	n, reason := vkBytes(b, info.Size())
	if reason == "" && info.Size() != n {
		reason = fmt.Sprintf("expected %d bytes of a verifying key, found %d", n, info.Size())
	}
	if reason != "" {
		return nil, nil, &Error{Path: path, Reason: reason, Remedy: remedyReplace}
	}
	b = append(b, make([]byte, n-vkHeaderBytes)...)
	if _, err := io.ReadFull(f, b[vkHeaderBytes:]); err != nil {
		return nil, nil, fileError(path, err)
	}
	vk, err := parseVK(ctx, b, checkG1, checkG2)
	if err != nil {
		return nil, nil, pointError(ctx, path, err)
	}
	return vk, b, nil
}

// ReadVK reads the set's verifying key from dir. Errors are of type *Error; the
// remedy for a missing file names the command that makes one for development.
func (s Set) ReadVK(ctx context.Context, dir string) (*groth16.VerifyingKey, error) {
	vk, err := ReadVK(ctx, s.VKPath(dir))
	return vk, s.missing(dir, err)
}

// missing adds the remedy for a file that does not exist.
func (s Set) missing(dir string, err error) error {
	var e *Error
	if errors.As(err, &e) && errors.Is(e.Err, fs.ErrNotExist) {
		e.Remedy = s.setupRemedy(dir)
	}
	return err
}

func fileError(path string, err error) *Error {
	e := &Error{Path: path, Reason: err.Error(), Err: err}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		e.Reason = pathErr.Err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Reason, e.Remedy = "does not exist", "check the parameter directory"
	case errors.Is(err, fs.ErrPermission):
		e.Remedy = "make it readable for the user that runs the prover"
	}
	return e
}

// pointError names the file of a bad point; a cancelled context stays what it is.
func pointError(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &Error{Path: path, Reason: err.Error(), Remedy: remedyReplace, Err: err}
}
