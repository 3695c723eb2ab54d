package prover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/interlock-prover/interlock/prover/porep"
	"github.com/interlock-prover/interlock/shared"
)

// makeC1Name is the "benchmark" that makes an input for others.
const makeC1Name = "make-c1"

// makeC1 writes the phase-1 output of a sector that nobody sealed. Arguments are
// size=SIZE, out=PATH and, optionally, seed=N, miner-id=N, sector=N, partitions=N.
func makeC1(ctx context.Context, args []string, out func(line string)) error {
	sparse := porep.Sparse{Variant: porep.V1_1, MinerID: 1000, SectorNumber: 1}
	var path string
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case "out":
			path = value
		case "size":
			var size shared.SectorSize
			size, err = shared.ParseSectorSize(value)
			sparse.SectorSize = uint64(size)
		case "seed":
			sparse.Seed, err = strconv.ParseUint(value, 10, 64)
		case "miner-id":
			sparse.MinerID, err = strconv.ParseUint(value, 10, 64)
		case "sector":
			sparse.SectorNumber, err = strconv.ParseUint(value, 10, 64)
		case "partitions":
			sparse.Partitions, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("%s has no such argument", makeC1Name)
		}
		if err != nil {
			return &shared.InvalidRequestError{Field: name, Reason: err.Error()}
		}
	}
	if path == "" {
		return &shared.InvalidRequestError{Field: "out", Reason: "no file given"}
	}
	s, err := sparse.Statement()
	if err != nil {
		return atBoundary(err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// Written beside its place first, so that a half of it is never taken for one.
	f, err := os.CreateTemp(filepath.Dir(path), ".c1-")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w; its directory must be there, and writable", path, errors.Unwrap(err))
	}
	defer os.Remove(f.Name()) // does nothing after the rename
	err = s.WritePhase1(f)
	size, seekErr := f.Seek(0, io.SeekCurrent)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if seekErr != nil {
		return seekErr
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	out(fmt.Sprintf("%s: %d bytes, SYNTHETIC: no sector was sealed; for tests and benchmarks only", path, size))
	return nil
}
