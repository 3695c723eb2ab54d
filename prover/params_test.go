package prover

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// windowSet copies the parameters of window PoSt, the smallest, to a directory of the test's own.
func windowSet(t *testing.T) (dir, paramsPath, vkPath string) {
	t.Helper()
	from, err := paramsDir()
	require.NoError(t, err)
	b, err := blueprintOf(windowCircuit)
	require.NoError(t, err)
	dir = t.TempDir()
	for _, path := range []string{b.set().ParamsPath(from), b.set().VKPath(from)} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o644))
	}
	return dir, b.set().ParamsPath(dir), b.set().VKPath(dir)
}

var windowCircuit = shared.CircuitRequest{Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize2KiB}

// writeManifest lists files as the original library's parameters.json does.
func writeManifest(t *testing.T, files ...string) string {
	t.Helper()
	entries := map[string]any{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		digest := blake2b.Sum512(data)
		entries[filepath.Base(path)] = map[string]any{"cid": "QmNone", "digest": hex.EncodeToString(digest[:16]), "sector_size": 2048}
	}
	text, err := json.Marshal(entries)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "parameters.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	return path
}

func openLogged(t *testing.T, dir string, change func(*config.Parameters)) (*Engine, *bytes.Buffer) {
	t.Helper()
	c := config.Default()
	change(&c.Parameters)
	log := &bytes.Buffer{}
	e, err := open(t.Context(), c, dir, hclog.New(&hclog.LoggerOptions{Output: log}), hardware{cpu: groth16.NewCPU("cpu", 0)}, randomBlinding)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e, log
}

// Every point of a file is checked once for each version of it, not once for each process.
func TestCompleteChecksAreRemembered(t *testing.T) {
	dir, path, _ := windowSet(t)
	check := func() (log string, err error) {
		e, buffer := openLogged(t, dir, func(p *config.Parameters) { p.Verify = config.CheckFull })
		_, err = e.Preload(t.Context(), windowCircuit)
		return buffer.String(), err
	}
	const checked, anew = "checked every point", "another than was checked before"
	log, err := check()
	require.NoError(t, err)
	require.Contains(t, log, checked)
	log, err = check()
	require.NoError(t, err)
	require.NotContains(t, log, checked, "the second time it is trusted")

	later := time.Now().Add(time.Minute)
	require.NoError(t, os.Chtimes(path, later, later))
	log, err = check()
	require.NoError(t, err)
	require.Contains(t, log, anew)
	require.Contains(t, log, checked)

	// Where nothing can be noted, all is as right, and it is said.
	require.NoError(t, os.Remove(path+".verified"))
	require.NoError(t, os.MkdirAll(path+".verified/full", 0o755))
	log, err = check()
	require.NoError(t, err)
	require.Contains(t, log, "will be checked again at the next start")
	require.NoError(t, os.RemoveAll(path+".verified"))
	log, err = check()
	require.NoError(t, err)
	require.Contains(t, log, checked)

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)-1] ^= 1 // of the last point
	require.NoError(t, os.WriteFile(path, data, 0o644))
	log, err = check()
	var bad *shared.ParamsError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, path, bad.Path)
	require.Contains(t, bad.Reason, "query B in G2")
	require.Contains(t, log, anew)
}

// A file that is replaced while the engine has it open is opened and checked anew by the next request.
func TestReplacedFileIsOpenedAnew(t *testing.T) {
	dir, path, _ := windowSet(t)
	e, log := openLogged(t, dir, func(p *config.Parameters) {})
	_, err := e.Preload(t.Context(), windowCircuit)
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	replace := func(data []byte) {
		require.NoError(t, os.WriteFile(path+".new", data, 0o644))
		require.NoError(t, os.Rename(path+".new", path))
	}
	replace(data[:len(data)-1])
	request, _ := loadCase(t, "window-2KiB")
	request.Vanilla = request.Vanilla[:1]
	_, err = e.Prove(t.Context(), request, nil)
	var bad *shared.ParamsError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, path, bad.Path)
	require.Contains(t, bad.Reason, "truncated")
	require.Contains(t, log.String(), "changed since it was opened")
	require.Zero(t, e.memory.Used(), "nothing is left of what was loaded before")

	replace(data)
	_, err = e.Prove(t.Context(), request, nil)
	require.NoError(t, err)
}

// What a setup that was killed left beside a file is named by a check of it, and logged.
func TestCheckNamesWhatASetupLeft(t *testing.T) {
	dir, path, _ := windowSet(t)
	left := filepath.Join(dir, "."+filepath.Base(path)+".123.tmp")
	require.NoError(t, os.WriteFile(left, []byte("half"), 0o600))
	e, log := openLogged(t, dir, func(*config.Parameters) {})
	r, err := e.CheckParams(t.Context(), path, nil)
	require.NoError(t, err)
	require.Equal(t, []string{left}, r.Leftovers)
	require.Contains(t, log.String(), "a setup that was killed left a file, which the next setup removes: file="+left)
	require.FileExists(t, left)
}

// With a manifest, other files than those it lists are named and not used: the verifying key always, the parameter file
// when it is checked completely or by the operator. What is right is named with its kind and size.
func TestManifestIsHeeded(t *testing.T) {
	dir, path, vkPath := windowSet(t)
	load := func(manifest string, depth config.ParametersCheck) (*Engine, error) {
		e, _ := openLogged(t, dir, func(p *config.Parameters) { p.Verify, p.Manifest = depth, manifest })
		_, err := e.Preload(t.Context(), windowCircuit)
		return e, err
	}
	e, err := load(writeManifest(t, path, vkPath), config.CheckFull)
	require.NoError(t, err)
	r, err := e.CheckParams(t.Context(), path, nil)
	require.NoError(t, err)
	require.Equal(t, windowCircuit, shared.CircuitRequest{Kind: r.Kind, SectorSize: r.SectorSize})
	require.True(t, r.Listed)
	require.Empty(t, r.Leftovers)

	var bad *shared.ParamsError
	_, err = load(writeManifest(t, path), config.CheckStructure)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, vkPath, bad.Path)
	require.Contains(t, bad.Reason, "is not listed in the manifest")

	other := writeManifest(t, path, vkPath)
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	digest := blake2b.Sum512(data)
	text = bytes.Replace(text, []byte(hex.EncodeToString(digest[:16])), []byte("00112233445566778899aabbccddeeff"), 1)
	require.NoError(t, os.WriteFile(other, text, 0o644))
	e, err = load(other, config.CheckFull)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, path, bad.Path)
	require.Contains(t, bad.Reason, "where the manifest "+other+" has 00112233445566778899aabbccddeeff")
	_, err = e.CheckParams(t.Context(), path, nil)
	require.ErrorAs(t, err, &bad)
}
