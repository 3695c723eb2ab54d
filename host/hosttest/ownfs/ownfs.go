// Package ownfs runs a part of a test in a process with a small file system of its own, which can be filled or made
// read-only without harm to anybody.
package ownfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// dirEnv names the folder that the file system is mounted on.
const dirEnv = "DISK"

// exitNoMount is the exit status of a process that could not mount it.
const exitNoMount = 3

// Run runs the test's program anew, with env added to its environment, which has it call Main. It returns what that
// wrote. The test fails if Main's do does, and is skipped where nobody may mount a file system.
func Run(t *testing.T, env ...string) (output string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), dirEnv+"="+t.TempDir()), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exitNoMount {
		t.Skipf("this machine lets nobody mount a file system: %v %s", err, out)
	}
	require.NoError(t, err, string(out))
	return string(out)
}

// Main mounts a file system of the size, such as "1m", has do work with its folder, and gives the process's exit status.
func Main(size string, do func(dir string) error) (exitStatus int) {
	dir := os.Getenv(dirEnv)
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		fmt.Println(err)
		return exitNoMount
	}
	if err := do(dir); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}
