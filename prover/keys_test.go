package prover

import (
	"context"
	"sync"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/shared"
)

// Parameters are loaded ahead, dropped when nobody uses them, and loaded again by the next request.
func TestPreloadAndEvict(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	e := newEngine(t, dir, randomBlinding)
	ctx := context.Background()
	winning := shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB}

	none, err := e.Evict(ctx, winning)
	require.NoError(t, err)
	require.Equal(t, shared.EvictResult{}, none)
	for _, already := range []bool{false, true} {
		r, err := e.Preload(ctx, winning)
		require.NoError(t, err)
		require.Equal(t, already, r.AlreadyLoaded)
		require.Positive(t, r.Elapsed)
	}
	require.Len(t, e.paramsStatus(), 1)

	b, err := e.blueprint(winning)
	require.NoError(t, err)
	c, err := e.circuit(ctx, b)
	require.NoError(t, err)
	k, err := e.hold(ctx, c)
	require.NoError(t, err)
	_, err = e.Evict(ctx, winning)
	var busy *shared.BusyError
	require.ErrorAs(t, err, &busy)
	e.release(k)

	r, err := e.Evict(ctx, winning)
	require.NoError(t, err)
	require.True(t, r.WasLoaded)
	require.Positive(t, r.FreedBytes)
	require.Empty(t, e.paramsStatus())

	request, _ := loadCase(t, "winning-2KiB")
	_, err = e.Prove(ctx, request, nil)
	require.NoError(t, err)

	_, err = e.Preload(ctx, shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: 3})
	var invalid *shared.InvalidRequestError
	require.ErrorAs(t, err, &invalid)
	_, err = e.Preload(ctx, shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize4KiB})
	var missing *shared.ParamsError
	require.ErrorAs(t, err, &missing)
}

// However holding and evicting meet, a key that is held has its file open.
func TestHeldParametersAreNeverEvicted(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	e := newEngine(t, dir, randomBlinding)
	ctx := context.Background()
	winning := shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB}
	b, err := e.blueprint(winning)
	require.NoError(t, err)
	c, err := e.circuit(ctx, b)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				k, err := e.hold(ctx, c)
				if err != nil {
					t.Error(err)
					return
				}
				if err := k.file.ReadG1(ctx, groth16.QueryH, 0, make([]bls12381.G1Affine, 1)); err != nil {
					t.Errorf("a held key is closed: %v", err)
				}
				e.release(k)
				_, _ = e.Evict(ctx, winning) // busy, or done
			}
		})
	}
	wg.Wait()
}
