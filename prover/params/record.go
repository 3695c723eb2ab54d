package params

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/interlock-prover/interlock/prover/groth16"
)

// record is what the file beside a parameter file says that was completely
// checked: it holds for the version of the file that it describes.
type record struct {
	Format   int                     `json:"format"` // recordFormat
	Bytes    int64                   `json:"bytes"`
	Modified time.Time               `json:"modified"`
	SHA256   string                  `json:"sha256"`
	Blake2b  string                  `json:"blake2b"`
	Inputs   int                     `json:"inputs"`
	Points   [groth16.NumQueries]int `json:"points"`
	Checked  time.Time               `json:"checked"`
}

// recordFormat counts up when what a complete check means changes.
const recordFormat = 1

// recordPath is where the result of a complete check is kept.
func (f *File) recordPath() string { return f.path + ".verified" }

// Remember keeps the report of a complete check beside the file. Errors are of
// type *Error; a directory that cannot be written is one.
func (f *File) Remember(r *Report) error {
	rec := record{
		Format: recordFormat, Bytes: f.info.Size(), Modified: f.info.ModTime().UTC(),
		SHA256: r.SHA256, Blake2b: r.Blake2b, Inputs: r.Inputs, Points: r.Points, Checked: time.Now().UTC().Truncate(time.Second),
	}
	return writeFile(f.recordPath(), func(w io.Writer) error {
		encoder := json.NewEncoder(fileWriter{w, f.recordPath()})
		encoder.SetIndent("", "  ")
		return encoder.Encode(rec)
	})
}

// Recall returns the report of an earlier complete check of this version of the
// file, by its size and time; nil if there is none. changed says what became of
// the version that was checked earlier, if it was another.
func (f *File) Recall() (r *Report, changed string) {
	text, err := os.ReadFile(f.recordPath())
	if err != nil {
		return nil, "" // it will be checked
	}
	var rec record
	if json.Unmarshal(text, &rec) != nil || rec.Format != recordFormat || len(rec.Blake2b) != 128 || len(rec.SHA256) != 64 {
		return nil, ""
	}
	if rec.Bytes != f.info.Size() || !rec.Modified.Equal(f.info.ModTime()) {
		return nil, fmt.Sprintf("it had %d bytes of %s and the digest %s when it was checked on %s",
			rec.Bytes, rec.Modified.Format(time.RFC3339), rec.Blake2b[:manifestDigits], rec.Checked.Format(time.RFC3339))
	}
	r = &Report{
		Path: f.path, SizeBytes: rec.Bytes, Inputs: rec.Inputs, Points: rec.Points,
		SHA256: rec.SHA256, Blake2b: rec.Blake2b, Insecure: IsInsecureVK(f.vk),
	}
	for q := range r.Points {
		if r.Points[q] != f.Len(groth16.Query(q)) {
			return nil, ""
		}
	}
	return r, ""
}

// Forget drops what Remember kept: the file is not to be trusted.
func (f *File) Forget() error {
	if err := os.Remove(f.recordPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return writeError(f.recordPath(), err)
	}
	return nil
}

// Changed returns an *Error if the file at the path is not, or not any more,
// what Open found there.
func (f *File) Changed() error {
	now, err := os.Stat(f.path)
	if err != nil {
		return fileError(f.path, err)
	}
	if os.SameFile(f.info, now) && now.Size() == f.info.Size() && now.ModTime().Equal(f.info.ModTime()) {
		return nil
	}
	return &Error{
		Path: f.path, Remedy: "do not change parameter files while they are in use; what is wanted next opens the file anew",
		Reason: fmt.Sprintf("changed since it was opened: from %d bytes of %s to %d bytes of %s",
			f.info.Size(), f.info.ModTime().Format(time.RFC3339Nano), now.Size(), now.ModTime().Format(time.RFC3339Nano)),
	}
}
