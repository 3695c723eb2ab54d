package params

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"golang.org/x/crypto/blake2b"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
)

// Report is what Verify found out about a parameter file, or about a verifying
// key's.
type Report struct {
	Path      string
	SizeBytes int64
	// Inputs is the number of public inputs, the constant one included.
	Inputs int
	// Points is the number of points of each query; all zero for a verifying key.
	Points [groth16.NumQueries]int
	// SHA256 is the file's digest, hex.
	SHA256 string
	// Blake2b is the file's BLAKE2b-512, hex. Filecoin's manifest of mainnet
	// parameters lists the first 32 digits of it.
	Blake2b string
	// Insecure says that these are development parameters: see IsInsecure.
	Insecure bool
	// Leftovers are temporary files of the same name that were left beside the
	// file by a setup that was killed. The next setup in the directory removes
	// them.
	Leftovers []string
}

// Verify checks every point of the file: encoding, not at infinity, on the
// curve, in the subgroup of prime order; and computes the file's digests. It
// uses all cores. Nothing is remembered: see Remember. progress, if not nil, is told how many of the file's bytes
// have been checked; it may be called from several goroutines. Errors about
// the file are of type *Error.
func (f *File) Verify(ctx context.Context, progress func(done, total int64)) (*Report, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.data == nil {
		return nil, fmt.Errorf("%s: %w", f.path, errClosed)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer forget(f.data)

	r := &Report{Path: f.path, SizeBytes: f.SizeBytes(), Inputs: len(f.vk.IC), Insecure: IsInsecureVK(f.vk)}
	for q := range r.Points {
		r.Points[q] = f.Len(groth16.Query(q))
	}
	var wg sync.WaitGroup
	digest := func(h hash.Hash, to *string) {
		wg.Go(func() {
			if err := hashMapped(ctx, h, f.data); err != nil {
				cancel(err)
				return
			}
			*to = hex.EncodeToString(h.Sum(nil))
		})
	}
	b2, err := blake2b.New512(nil)
	if err != nil {
		return nil, fmt.Errorf("verifying %s: %w", f.path, err)
	}
	digest(sha256.New(), &r.SHA256)
	digest(b2, &r.Blake2b)
	wg.Go(func() {
		if err := f.checkPoints(ctx, progress); err != nil {
			cancel(err)
		}
	})
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		var typed *Error
		if errors.As(err, &typed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		return nil, &Error{Path: f.path, Reason: err.Error(), Remedy: remedyReplace, Err: err}
	}
	if err := f.Changed(); err != nil {
		return nil, err
	}
	return r, nil
}

// vkExt is how names of verifying keys end.
const vkExt = ".vk"

// Verify opens the parameter file at path and checks it with File.Verify. A file
// whose name ends in ".vk" is checked as the verifying key that it is to be. Errors
// about the file are of type *Error.
func Verify(ctx context.Context, path string, progress func(done, total int64)) (*Report, error) {
	r, err := verify(ctx, path, progress)
	if err != nil {
		return nil, err
	}
	r.Leftovers = leftovers(filepath.Dir(path), filepath.Base(path)+".", false)
	return r, nil
}

func verify(ctx context.Context, path string, progress func(done, total int64)) (*Report, error) {
	if filepath.Ext(path) == vkExt {
		return verifyVK(ctx, path, progress)
	}
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Verify(ctx, progress)
}

// verifyVK checks every point of a verifying key, and computes its file's digests.
func verifyVK(ctx context.Context, path string, progress func(done, total int64)) (*Report, error) {
	vk, b, err := readVK(ctx, path)
	if err != nil {
		return nil, err
	}
	size := int64(len(b))
	if progress != nil {
		progress(size, size)
	}
	sha, b2 := sha256.Sum256(b), blake2b.Sum512(b)
	return &Report{
		Path: path, SizeBytes: size, Inputs: len(vk.IC),
		SHA256: hex.EncodeToString(sha[:]), Blake2b: hex.EncodeToString(b2[:]), Insecure: IsInsecureVK(vk),
	}, nil
}

// hashMapped feeds mapped memory to h.
func hashMapped(ctx context.Context, h hash.Hash, data []byte) error {
	const step = 1 << 20
	for len(data) > 0 && ctx.Err() == nil {
		n := min(step, len(data))
		if err := guardFault(func() error { h.Write(data[:n]); return nil }); err != nil {
			return err
		}
		forget(data[:n])
		data = data[n:]
	}
	return ctx.Err()
}

func (f *File) checkPoints(ctx context.Context, progress func(done, total int64)) error {
	var checked atomic.Int64
	total := f.SizeBytes()
	done := func(n int64) {
		if n = checked.Add(n); progress != nil {
			progress(n, total)
		}
	}
	first := f.queries[groth16.QueryH].offset - countBytes
	err := guardFault(func() error {
		_, err := parseVK(ctx, f.data[:first], checkG1, checkG2)
		return err
	})
	if err != nil {
		return fmt.Errorf("verifying key: %w", err)
	}
	done(first)
	for q := range groth16.Query(groth16.NumQueries) {
		size := q.PointBytes()
		data := f.data[f.queries[q].offset:][:f.Len(q)*size]
		done(countBytes)
		err := constraint.Parallel(ctx, f.Len(q), subgroupBatch, runtime.GOMAXPROCS(0), func(from, to int) error {
			part := data[from*size : to*size]
			defer forget(part)
			i, err := 0, error(nil)
			if q == groth16.QueryBG2 {
				i, err = checkBatch(ctx, part, size, decodeG2, (*bls12381.G2Affine).IsOnCurve, (*bls12381.G2Affine).IsInSubGroup,
					(*bls12381.G2Jac).AddMixed, (*bls12381.G2Jac).AddAssign, (*bls12381.G2Jac).IsInSubGroup)
			} else {
				i, err = checkBatch(ctx, part, size, decodeG1, (*bls12381.G1Affine).IsOnCurve, (*bls12381.G1Affine).IsInSubGroup,
					(*bls12381.G1Jac).AddMixed, (*bls12381.G1Jac).AddAssign, (*bls12381.G1Jac).IsInSubGroup)
			}
			if err != nil {
				return fmt.Errorf("query %s, point %d: %w", q, from+i, err)
			}
			done(int64(len(part)))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkBatch decodes and checks all points of data. It returns the number of a
// bad one and what is wrong with it.
func checkBatch[A, J any](ctx context.Context, data []byte, size int,
	decode func(*A, []byte) error, isOnCurve, isInSubgroup func(*A) bool,
	addMixed func(*J, *A) *J, add func(*J, *J) *J, isInSubgroupJacobian func(*J) bool,
) (bad int, err error) {
	points := make([]A, len(data)/size)
	err = guardFault(func() error {
		for bad = range points {
			if err := decode(&points[bad], data[bad*size:]); err != nil {
				return err
			}
			if !isOnCurve(&points[bad]) {
				return errNotOnCurve
			}
		}
		return nil
	})
	if err != nil {
		return bad, err
	}
	if len(points) >= minSubgroupBatch {
		if ok, err := inSubgroup(ctx, points, addMixed, add, isInSubgroupJacobian); ok || err != nil {
			return 0, err
		}
	}
	for bad = range points {
		if bad%64 == 0 && ctx.Err() != nil {
			return bad, context.Cause(ctx)
		}
		if !isInSubgroup(&points[bad]) {
			return bad, errNotInGroup
		}
	}
	return 0, nil
}
