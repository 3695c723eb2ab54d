package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
)

// ChecksumError says that the plugin's program is not the one that was asked for. It was not started.
type ChecksumError struct {
	Path      string
	Want, Got string // SHA-256, hex
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("the plugin's program %s was not started: its SHA-256 is %s, not %s", e.Path, e.Got, e.Want)
}

// program is the plugin's program, held open so that what is started is what was checked, whatever becomes of its path.
type program struct{ file *os.File }

// openProgram opens a program and compares its SHA-256 with the wanted one.
func openProgram(path, want string) (*program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the plugin's program: %w", err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the plugin's program: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.EqualFold(got, want) {
		_ = f.Close()
		return nil, &ChecksumError{Path: path, Want: want, Got: got}
	}
	return &program{f}, nil
}

// path is where the new process finds the program: the file that it inherits until it becomes the program.
func (p *program) path() string { return fmt.Sprintf("/proc/self/fd/%d", p.file.Fd()) }

func (p *program) close() { _ = p.file.Close() }
