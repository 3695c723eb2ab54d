package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

var fuzzed = Entry{
	Key: 7, Accepted: time.Unix(1_700_000_000, 0).UTC(),
	Request: shared.Request{ID: "r", Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize2KiB, Vanilla: [][]byte{{1, 2, 3}, {4}}},
}

// Whatever a record holds behind a checksum that is right, it is read as it would be written, or is damaged.
func FuzzRecord(f *testing.F) {
	for _, answer := range []*Answer{nil, {At: fuzzed.Accepted, Result: shared.Result{RequestID: "r", Proof: make([]byte, 192)}}, {At: fuzzed.Accepted, Err: shared.ErrCancelled}} {
		e := fuzzed
		e.Answer = answer
		value, err := encodeRecord(&e)
		require.NoError(f, err)
		f.Add(value[sha256.Size:])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		key := fuzzed.Key.bytes()
		var e Entry
		var err error
		bounded.Allocation(t, len(text), func() { e, err = decodeRecord(key, append(recordSum(key, text), text...)) })
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		again, err := encodeRecord(&e)
		require.NoError(t, err)
		twice, err := decodeRecord(key, again)
		require.NoError(t, err)
		require.Equal(t, e.Request, twice.Request)
		require.Equal(t, e.Digest, twice.Digest)
	})
}

// The same for a request's file.
func FuzzRequestFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "request")
	require.NoError(f, writeRequest(path, &fuzzed))
	data, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(data[len(magic) : len(data)-sha256.Size])
	f.Add(binary.BigEndian.AppendUint64(nil, 1<<63))
	f.Fuzz(func(t *testing.T, rest []byte) {
		whole := append([]byte(magic), rest...)
		sum := sha256.Sum256(whole)
		require.NoError(t, os.WriteFile(path, append(whole, sum[:]...), 0o600))
		var e Entry
		var err error
		bounded.Allocation(t, len(whole), func() { e, err = readRequest(path) })
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		taken := 0
		for _, v := range e.Request.Vanilla {
			taken += len(v)
		}
		require.LessOrEqual(t, taken, len(rest))
	})
}
