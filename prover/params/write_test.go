package params

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// envKilledSetup makes the test's program a setup in that directory that stands still half way, until it is killed.
const envKilledSetup = "INTERLOCK_TEST_KILLED_SETUP"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envKilledSetup); dir != "" {
		os.Exit(halfSetup(dir))
	}
	os.Exit(m.Run())
}

func halfSetup(dir string) int {
	err := writeFile(testSet.ParamsPath(dir), func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			return err
		}
		_, err := os.Stdout.WriteString("written\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return err
	})
	if err != nil {
		return 1
	}
	return 0
}

// What a killed setup left is named by a check of the file that it was to be, and removed by the next setup; what another
// is writing is left alone.
func TestLeftoversOfAKilledSetup(t *testing.T) {
	dir, circuit, _ := setup(t, 3)
	path := testSet.ParamsPath(dir)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envKilledSetup+"="+dir)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len("written\n")))
	require.NoError(t, err)
	half := ""
	for _, name := range names(t, dir) {
		if strings.HasSuffix(name, ".tmp") {
			half = filepath.Join(dir, name)
		}
	}
	require.FileExists(t, half)

	again, err := testSet.SetupInsecure(t.Context(), circuit, dir, nil, nil)
	require.NoError(t, err)
	require.Empty(t, again.Removed)
	require.FileExists(t, half, "its writer lives")
	r, err := Verify(t.Context(), path, nil)
	require.NoError(t, err)
	require.Empty(t, r.Leftovers)

	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	require.Error(t, cmd.Wait())
	r, err = Verify(t.Context(), path, nil)
	require.NoError(t, err)
	require.Equal(t, []string{half}, r.Leftovers)
	require.FileExists(t, half, "a check removes nothing")
	r, err = Verify(t.Context(), testSet.VKPath(dir), nil)
	require.NoError(t, err)
	require.Empty(t, r.Leftovers, "of another file")

	other := filepath.Join(dir, ".notes.tmp")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	again, err = testSet.SetupInsecure(t.Context(), circuit, dir, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []string{half}, again.Removed)
	require.NoFileExists(t, half)
	require.FileExists(t, other)
}

// A file that is being written is its writer's until it has its name.
func TestAWriterKeepsItsFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "v28-x.params")
	require.NoError(t, writeFile(path, func(w io.Writer) error {
		require.Empty(t, leftovers(dir, version+"-", true))
		require.Len(t, names(t, dir), 1)
		_, err := w.Write([]byte("whole"))
		return err
	}))
	require.Equal(t, []string{"v28-x.params"}, names(t, dir))
}

// An error of writing says what to do, which is something else than for one of reading.
func TestWriteErrors(t *testing.T) {
	for cause, want := range map[error]string{
		unix.EROFS:  "p: cannot be written: read-only file system (make its directory writable for the user that runs the prover)",
		unix.EACCES: "p: cannot be written: permission denied (make its directory writable for the user that runs the prover)",
		unix.ENOSPC: "p: cannot be written: no space left on device (make room for it)",
		unix.ENOENT: "p: cannot be written: its directory does not exist (make the directory, or name another)",
	} {
		err := writeError("p", &os.PathError{Op: "open", Path: "q", Err: cause})
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, cause)
	}
}

// A verifying key's file is checked as what it is.
func TestVerifyOfAVerifyingKey(t *testing.T) {
	dir, _, made := setup(t, 3)
	path := testSet.VKPath(dir)
	r, err := Verify(t.Context(), path, nil)
	require.NoError(t, err)
	require.Zero(t, r.Points, "a verifying key has none")
	require.Equal(t, made.VKSHA256, r.SHA256)
	require.Equal(t, made.VKBytes, r.SizeBytes)
	require.Positive(t, r.Inputs)
	require.True(t, r.Insecure)
	whole, err := Verify(t.Context(), testSet.ParamsPath(dir), nil)
	require.NoError(t, err)
	require.NotZero(t, whole.Points)
	require.Equal(t, whole.Inputs, r.Inputs)

	good, err := os.ReadFile(path)
	require.NoError(t, err)
	wrong := bytes.Clone(good)
	wrong[vkHeaderBytes+g1Bytes-1] ^= 1
	for want, bad := range map[string][]byte{
		"truncated within the verifying key": good[:len(good)-1],
		"bytes of a verifying key, found":    append(bytes.Clone(good), 0),
		"IC point 0":                         wrong,
	} {
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		_, err := Verify(t.Context(), path, nil)
		var typed *Error
		require.ErrorAs(t, err, &typed, want)
		require.Equal(t, path, typed.Path)
		require.NotEmpty(t, typed.Remedy)
		require.ErrorContains(t, err, want)
	}
}
