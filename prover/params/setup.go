package params

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/interlock-prover/interlock/prover/groth16"
)

// SetupReport says what SetupInsecure wrote.
type SetupReport struct {
	ParamsPath, VKPath, LabelPath string
	ParamsBytes, VKBytes          int64
	ParamsSHA256, VKSHA256        string // hex
	// Removed are temporary files that setups in the same directory left when they
	// were killed.
	Removed []string
	Elapsed time.Duration
}

// SetupInsecure makes development parameters of the circuit from the published
// toxic waste and writes three files to dir: the parameters, the verifying key
// and a label that says how insecure they are. Equal circuits give equal files,
// and the same that bellperson's generate_parameters gives for that waste.
// multiplier makes the points; nil stands for the CPU.
//
// A file appears under its final name only once it is complete, the label
// first. Development parameters that are there already are replaced; anything
// else under these names is left alone and is an *Error. Temporary files that
// killed setups left in dir are removed.
//
// progress, if not nil, is told how many of all points have been made.
func (s Set) SetupInsecure(ctx context.Context, circuit *groth16.Circuit, dir string, multiplier Multiplier, progress func(done, total int)) (*SetupReport, error) {
	start := time.Now()
	r := &SetupReport{ParamsPath: s.ParamsPath(dir), VKPath: s.VKPath(dir), LabelPath: s.LabelPath(dir)}
	for _, path := range []string{r.ParamsPath, r.VKPath} {
		if err := refuseToReplace(path); err != nil {
			return nil, err
		}
	}
	r.Removed = leftovers(dir, version+"-", true)
	g, err := newGenerator(ctx, circuit, multiplier, progress)
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
		digest := sha256.New()
		n, err := g.write(ctx, fileWriter{w, r.ParamsPath}, digest, vkEncoded)
		if err != nil {
			return err
		}
		r.ParamsBytes, r.ParamsSHA256 = n, hex.EncodeToString(digest.Sum(nil))

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

// fileWriter writes a file; its errors are of type *Error.
type fileWriter struct {
	w    io.Writer
	path string
}

func (f fileWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err != nil {
		return n, writeError(f.path, err)
	}
	return n, nil
}

func writeBytes(path string, b []byte) error {
	return writeFile(path, func(w io.Writer) error {
		_, err := fileWriter{w, path}.Write(b)
		return err
	})
}
