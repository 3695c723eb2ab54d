package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/shared"
)

// describeCards is a plugin's program that was asked for cards. The library's name says what it does.
func describeCards() int {
	if len(os.Args) != 3 || os.Args[1] != shared.CardsCommand {
		return 9
	}
	switch library := os.Args[2]; library {
	case "crash":
		fmt.Fprintln(os.Stderr, "the driver\nis broken")
		return 4
	case "hang":
		time.Sleep(time.Minute)
	case "nonsense":
		fmt.Println("nonsense")
	default:
		_ = json.NewEncoder(os.Stdout).Encode(shared.CardsReport{Library: library, Cards: []shared.Card{{UUID: "GPU-1", FreeBytes: 1 << 40}}})
	}
	return 0
}

// A process of its own looks at the cards, and how that goes wrong is told.
func TestCardsAreDescribed(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	o := host.Options{PluginPath: self, Env: []string{roleEnv + "=cards", "GORACE=atexit_sleep_ms=0"}}
	want := shared.CardsReport{Library: "/lib/x.so", Cards: []shared.Card{{UUID: "GPU-1", FreeBytes: 1 << 40}}}
	report, err := host.DescribeCards(t.Context(), o, "/lib/x.so")
	require.NoError(t, err)
	require.Equal(t, want, report)

	_, err = host.DescribeCards(t.Context(), o, "crash")
	require.ErrorContains(t, err, "exit status 4; it wrote:\n\tthe driver\n\tis broken")
	_, err = host.DescribeCards(t.Context(), o, "nonsense")
	require.ErrorContains(t, err, "invalid character")

	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("that is too long"))
	defer cancel()
	start := time.Now()
	_, err = host.DescribeCards(ctx, o, "hang")
	require.ErrorContains(t, err, "that is too long")
	require.Less(t, time.Since(start), 10*time.Second)

	program, err := os.ReadFile(self)
	require.NoError(t, err)
	sum := sha256.Sum256(program)
	o.PluginSHA256 = hex.EncodeToString(sum[:])
	report, err = host.DescribeCards(t.Context(), o, "/lib/x.so")
	require.NoError(t, err)
	require.Equal(t, want, report)
	o.PluginSHA256 = strings.Repeat("00", sha256.Size)
	_, err = host.DescribeCards(t.Context(), o, "/lib/x.so")
	var other *host.ChecksumError
	require.ErrorAs(t, err, &other)
}
