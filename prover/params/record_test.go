package params

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
)

// What a complete check found holds for that version of the file alone.
func TestRememberedUntilTheFileChanges(t *testing.T) {
	dir, _, _ := setup(t, 10)
	path := testSet.ParamsPath(dir)
	open := func() *File {
		f, err := Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return f
	}
	f := open()
	r, changed := f.Recall()
	require.Nil(t, r)
	require.Empty(t, changed)
	want, err := f.Verify(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, f.Remember(want))
	got, _ := open().Recall()
	require.Equal(t, want, got)

	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(path, later, later))
	r, changed = open().Recall()
	require.Nil(t, r)
	require.Contains(t, changed, fmt.Sprintf("it had %d bytes", want.SizeBytes))
	require.Contains(t, changed, want.Blake2b[:32])

	for _, record := range []string{"", "{", "null", `{"format": 1}`, `{"format": 2}`} {
		require.NoError(t, os.WriteFile(path+".verified", []byte(record), 0o644))
		r, _ = open().Recall()
		require.Nil(t, r, record)
	}
}

// A file that is written to, replaced or removed while it is open is named by the next that reads from it.
func TestChangesUnderneathAreNamed(t *testing.T) {
	for name, change := range map[string]struct {
		do   func(t *testing.T, path string)
		text string
	}{
		"in place": {func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte{7}, 3)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			later := time.Now().Add(time.Second) // coarse clocks
			require.NoError(t, os.Chtimes(path, later, later))
		}, "changed since it was opened"},
		"replaced": {func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".new", data, 0o644))
			require.NoError(t, os.Rename(path+".new", path))
		}, "changed since it was opened"},
		"removed": {func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, _ := setup(t, 10)
			path := testSet.ParamsPath(dir)
			f, err := Open(path)
			require.NoError(t, err)
			defer f.Close()
			points := make([]bls12381.G1Affine, 3)
			require.NoError(t, f.Changed())
			require.NoError(t, f.ReadG1(t.Context(), groth16.QueryH, 0, points))
			change.do(t, path)
			var e *Error
			err = f.ReadG1(t.Context(), groth16.QueryH, 0, points)
			require.ErrorAs(t, err, &e)
			require.Equal(t, path, e.Path)
			require.ErrorContains(t, err, change.text)
			_, err = f.Verify(t.Context(), nil)
			require.ErrorAs(t, err, &e)
		})
	}
}

// Reading, of whatever part, leaves what was read as it was.
func TestForget(t *testing.T) {
	dir, _, _ := setup(t, 100)
	f, err := Open(testSet.ParamsPath(dir))
	require.NoError(t, err)
	defer f.Close()
	all, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	for from := 0; from < len(all); from += 1000 {
		forget(f.data[from:min(from+3000, len(all))])
	}
	require.True(t, bytes.Equal(all, f.data))
}

// A manifest in the original library's format tells its files from others.
func TestManifest(t *testing.T) {
	dir, _, _ := setup(t, 10)
	params, vk := testSet.ParamsPath(dir), testSet.VKPath(dir)
	r, err := Verify(t.Context(), params, nil)
	require.NoError(t, err)
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "parameters.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	manifest := func(name, digest string) string {
		return write(fmt.Sprintf(`{%q: {"cid": "QmX", "digest": %q, "sector_size": 2048}}`, name, digest))
	}
	m, err := ReadManifest(manifest(filepath.Base(params), r.Blake2b[:32]))
	require.NoError(t, err)
	require.NoError(t, m.Check(params, r.Blake2b))
	require.NoError(t, m.CheckFile(t.Context(), params), "the same digest, computed otherwise")
	var e *Error
	require.ErrorAs(t, m.CheckFile(t.Context(), vk), &e)
	require.Equal(t, vk, e.Path)
	require.Contains(t, e.Reason, "is not listed in the manifest")

	other := "0123456789abcdef0123456789abcdef"
	m, err = ReadManifest(manifest(filepath.Base(params), other))
	require.NoError(t, err)
	require.ErrorAs(t, m.Check(params, r.Blake2b), &e)
	require.Contains(t, e.Reason, "its digest is "+r.Blake2b[:32]+" where the manifest")
	require.Contains(t, e.Reason, other)

	for _, bad := range []string{"", "[]", `{"a": 1}`, `{"a": {"digest": "12"}}`, `{"a": {"digest": "0123456789abcdef0123456789abcdeg"}}`} {
		_, err := ReadManifest(write(bad))
		require.ErrorAs(t, err, &e, bad)
		require.Contains(t, e.Reason, "is no manifest", bad)
	}
	_, err = ReadManifest(filepath.Join(dir, "none"))
	require.ErrorAs(t, err, &e)
}
