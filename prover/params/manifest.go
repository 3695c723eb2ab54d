package params

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/crypto/blake2b"
)

// Manifest lists parameter files and verifying keys by name, as the file
// parameters.json of filecoin-proofs does.
type Manifest struct {
	path    string
	entries map[string]ManifestEntry
}

// ManifestEntry is what a manifest says of one file.
type ManifestEntry struct {
	CID        string `json:"cid"`         // where to fetch it
	Digest     string `json:"digest"`      // see manifestDigits
	SectorSize uint64 `json:"sector_size"` // bytes
}

const (
	// manifestDigits is how many hex digits of a file's BLAKE2b-512 a manifest
	// gives (filecoin-proofs' get_digest_for_file_within_cache).
	manifestDigits = 32
	// maxManifestBytes is a hundred times what the public one has.
	maxManifestBytes = 4 << 20
)

// ReadManifest reads a manifest. Errors are of type *Error.
func ReadManifest(path string) (*Manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close()
	bad := func(format string, args ...any) (*Manifest, error) {
		return nil, &Error{Path: path, Reason: "is no manifest: " + fmt.Sprintf(format, args...), Remedy: "take the parameters.json of the original proofs library"}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return nil, fileError(path, err)
	}
	if len(text) > maxManifestBytes {
		return bad("it is larger than %d bytes", maxManifestBytes)
	}
	m := &Manifest{path: path}
	if err := json.Unmarshal(text, &m.entries); err != nil {
		return bad("%v", err)
	}
	for name, e := range m.entries {
		if digest, err := hex.DecodeString(e.Digest); err != nil || len(digest) != manifestDigits/2 {
			return bad("the digest of %s is %q, not %d hex digits", name, e.Digest, manifestDigits)
		}
	}
	return m, nil
}

// Check compares a file's BLAKE2b digest, hex, with the one that the manifest
// gives under the file's name. Errors are of type *Error.
func (m *Manifest) Check(path, digest string) error {
	e, listed := m.entries[filepath.Base(path)]
	if !listed {
		return &Error{Path: path, Reason: fmt.Sprintf("is not listed in the manifest %s", m.path), Remedy: "use the files that the manifest lists, or another manifest"}
	}
	if got := digest[:manifestDigits]; got != e.Digest {
		return &Error{
			Path: path, Remedy: remedyReplace,
			Reason: fmt.Sprintf("its digest is %s where the manifest %s has %s: it is damaged, or another file of that name", got, m.path, e.Digest),
		}
	}
	return nil
}

// CheckFile is Check for a file that is read for it, such as a verifying key.
func (m *Manifest) CheckFile(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fileError(path, err)
	}
	defer f.Close()
	h, err := blake2b.New512(nil)
	if err != nil {
		return fmt.Errorf("digest of %s: %w", path, err)
	}
	if _, err := io.Copy(h, &contextReader{ctx, f}); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fileError(path, err)
	}
	return m.Check(path, hex.EncodeToString(h.Sum(nil)))
}

// contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(b)
}
