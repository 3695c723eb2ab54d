//go:build !race

package gateway

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
)

// maxExtraBytes is what gateway and plugin together may take beside what they take at rest, while a C1 comes and is
// handed on.
const maxExtraBytes = 200e6

// Property: a C1 of 32 GiB is in memory three times at most while it comes, and nothing of it piles up. These are: as gRPC
// received it, and keeps the buffers for the next; as one piece, in the gateway; and in the memory file, which the plugin
// reads where it lies. Later requests may find a former one's piece not collected yet.
func TestLargeRequestsTakeLittleMemory(t *testing.T) {
	for _, mode := range []string{modePlain, modeJournal, modeDetached} {
		t.Run(mode, func(t *testing.T) { testLargeRequests(t, mode) })
	}
}

func testLargeRequests(t *testing.T, mode string) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "gateway") // short enough for a socket's path
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envGateway+"="+mode, envGatewayDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var address string
	var plugin int
	_, err = fmt.Fscanln(stdout, &address, &plugin)
	require.NoError(t, err)
	defer func() {
		require.NoError(t, stdin.Close())
		require.NoError(t, cmd.Wait())
		if mode == modeDetached {
			require.NoError(t, syscall.Kill(plugin, syscall.SIGTERM))
		}
		require.Eventually(t, func() bool { return syscall.Kill(plugin, 0) != nil }, 10*time.Second, 10*time.Millisecond)
	}()
	client := dial(t, address)
	_, err = client.GetStatus(t.Context(), &cuzkpb.GetStatusRequest{})
	require.NoError(t, err)

	processes := []int{cmd.Process.Pid, plugin}
	atRest := memoryOf(processes)
	require.Greater(t, atRest, int64(5<<20))
	var worst int64
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			worst = max(worst, memoryOf(processes)-atRest)
			select {
			case <-over:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	payload := make([]byte, c1Bytes)
	for i := range 10 {
		_, _ = rand.Read(payload[:1<<10])
		reply, err := client.Prove(t.Context(), &cuzkpb.ProveRequest{Submit: &cuzkpb.SubmitProofRequest{
			RequestId: strconv.Itoa(i), ProofKind: cuzkpb.ProofKind_POREP_SEAL_COMMIT, SectorSize: 32 << 30, RegisteredProof: 8,
			VanillaProof: payload[:len(payload)-i<<10],
		}})
		require.NoError(t, err)
		require.Equal(t, cuzkpb.AwaitProofResponse_COMPLETED, reply.Result.Status, reply.Result.ErrorMessage)
	}
	close(over)
	<-watched
	t.Logf("ten C1s of %d MB: %d MB more than at rest, at most", c1Bytes/1_000_000, worst/1_000_000)
	require.Greater(t, worst, int64(c1Bytes), "it is in memory at least once")
	require.Less(t, worst, int64(maxExtraBytes))
}

// memoryOf is what processes have in memory that no file on a disk could give back: their own pages, and the memory files
// that they have open or mapped, each of these once.
func memoryOf(processes []int) int64 {
	var total int64
	files := map[uint64]int64{} // by inode
	for _, pid := range processes {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if own := regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB`).FindSubmatch(text); own != nil {
			n, _ := strconv.ParseInt(string(own[1]), 10, 64)
			total += n << 10
		}
		maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		for _, m := range regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ (\d+) +/memfd:`).FindAllSubmatch(maps, -1) {
			from, _ := strconv.ParseInt(string(m[1]), 16, 64)
			to, _ := strconv.ParseInt(string(m[2]), 16, 64)
			inode, _ := strconv.ParseUint(string(m[3]), 10, 64)
			files[inode] = to - from
		}
		open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range open {
			if name, _ := os.Readlink(fd); strings.HasPrefix(name, "/memfd:") {
				var info syscall.Stat_t
				if err := syscall.Stat(fd, &info); err == nil {
					files[info.Ino] = info.Blocks * 512
				}
			}
		}
	}
	for _, bytes := range files {
		total += bytes
	}
	return total
}
