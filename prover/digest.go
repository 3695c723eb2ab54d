package prover

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/interlock-prover/interlock/shared"
)

// shapeKind is what the reference data calls a kind.
var shapeKind = map[shared.Kind]string{
	shared.KindPoRep:       "porep",
	shared.KindWinningPoSt: "winning",
	shared.KindWindowPoSt:  "window",
	shared.KindUpdate:      "update",
}

// chunkOf is the number of constraints in one chunk of a digest: 2^20 for the
// large circuits, which are those above 1 GiB but winning PoSt's, else 2^14.
func chunkOf(r shared.CircuitRequest) int {
	if r.SectorSize > 1<<30 && r.Kind != shared.KindWinningPoSt {
		return 1 << 20
	}
	return 1 << 14
}

// CircuitDigest implements shared.Toolbox.
func (e *Engine) CircuitDigest(ctx context.Context, r shared.CircuitRequest, progress func(shared.Progress)) (shared.CircuitDigest, error) {
	if err := r.Validate(); err != nil {
		return shared.CircuitDigest{}, err
	}
	start := time.Now()
	b, err := blueprintOf(r)
	if err != nil {
		return shared.CircuitDigest{}, atBoundary(err)
	}
	report := reporter(start, "chunks hashed", progress)
	s := b.compile().system()
	chunk := chunkOf(r)
	chunks := (s.NumConstraints() + chunk - 1) / chunk
	var hashed atomic.Int64
	d, err := s.Digest(ctx, chunk, func(int) { report(int(hashed.Add(1)), chunks) })
	if err != nil {
		return shared.CircuitDigest{}, err
	}
	return shared.CircuitDigest{
		Kind:         shapeKind[r.Kind],
		SectorSize:   r.SectorSize,
		Partitions:   r.Partitions,
		ParameterSet: b.set().ID,
		Inputs:       d.Inputs,
		Aux:          d.Aux,
		Constraints:  d.Constraints,
		Terms:        shared.CircuitTerms{A: int(d.TermsA), B: int(d.TermsB), C: int(d.TermsC)},
		Chunk:        d.Chunk,
		Chunks:       d.Chunks,
		Digest:       d.Total,
	}, nil
}
