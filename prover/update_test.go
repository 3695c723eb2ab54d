package prover

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
)

// loadUpdate reads an update of the reference data.
func loadUpdate(t testing.TB, name string) shared.Request {
	t.Helper()
	dir := filepath.Join("update", "testdata", "cases", name)
	raw, err := os.ReadFile(filepath.Join(dir, "case.json"))
	require.NoError(t, err)
	var c struct {
		SectorSize    shared.SectorSize `json:"sector_size"`
		CommROld      string            `json:"comm_r_old"`
		CommRNew      string            `json:"comm_r_new"`
		CommDNew      string            `json:"comm_d_new"`
		VanillaProofs []string          `json:"vanilla_proofs"`
	}
	require.NoError(t, json.Unmarshal(raw, &c))
	r := shared.Request{Kind: shared.KindUpdate, SectorSize: c.SectorSize}
	for to, text := range map[*[]byte]string{&r.CommROld: c.CommROld, &r.CommRNew: c.CommRNew, &r.CommDNew: c.CommDNew} {
		*to, err = hex.DecodeString(text)
		require.NoError(t, err)
	}
	for _, file := range c.VanillaProofs {
		v, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		r.Vanilla = append(r.Vanilla, v)
	}
	return r
}

// A right update gets as far as its parameters, which are not there; a wrong one is refused
// before, by the name of the field.
func TestUpdateIsRefusedByName(t *testing.T) {
	e := newEngine(t, t.TempDir(), randomBlinding)
	for what, c := range map[string]struct {
		change func(r *shared.Request)
		field  string
	}{
		"commitments exchanged": {func(r *shared.Request) { r.CommROld, r.CommRNew = r.CommRNew, r.CommROld }, "comm_r_old"},
		"another commitment":    {func(r *shared.Request) { r.CommDNew = r.CommROld }, "comm_d_new"},
		"no commitment":         {func(r *shared.Request) { r.CommRNew = nil }, "comm_r_new"},
		"a partition missing":   {func(r *shared.Request) { r.Vanilla = r.Vanilla[1:] }, "vanilla"},
		"partitions exchanged":  {func(r *shared.Request) { slices.Reverse(r.Vanilla) }, "vanilla[0]"},
		"a byte changed":        {func(r *shared.Request) { r.Vanilla[1][5000] ^= 1 }, "vanilla[1]"},
		"another size":          {func(r *shared.Request) { r.SectorSize = shared.SectorSize32KiB }, "vanilla[0]"},
	} {
		r := loadUpdate(t, "update-16KiB")
		c.change(&r)
		_, err := e.Prove(context.Background(), r, nil)
		var invalid *shared.InvalidRequestError
		require.ErrorAs(t, err, &invalid, what)
		require.Contains(t, invalid.Field, c.field, what)
	}
	_, err := e.Prove(context.Background(), loadUpdate(t, "update-16KiB"), nil)
	var missing *shared.ParamsError
	require.ErrorAs(t, err, &missing)
	require.Contains(t, missing.Remedy, "interlock params setup update 16KiB")
}

// The digest of the update's circuit is the reference data's JSON, field for field.
func TestUpdateDigestIsTheReference(t *testing.T) {
	e := newEngine(t, t.TempDir(), randomBlinding)
	got, err := e.CircuitDigest(context.Background(), shared.CircuitRequest{Kind: shared.KindUpdate, SectorSize: shared.SectorSize2KiB}, nil)
	require.NoError(t, err)
	raw, err := os.ReadFile("update/testdata/shapes/update-2KiB.json")
	require.NoError(t, err)
	var want shared.CircuitDigest
	require.NoError(t, json.Unmarshal(raw, &want))
	require.Equal(t, want, got)
}
