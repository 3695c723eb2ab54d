package cuda

import (
	"context"
	"errors"
	"time"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Work is a proof being computed on a card. It implements groth16.Work.
type Work struct {
	device   *Device
	loaded   *loadedKey
	key      *key // its value
	host     *witness.Witness
	witness  handle // the same on the card; 0 while it is not there
	spans    []Span
	sums     *groth16.Sums
	released bool
}

var _ groth16.Work = (*Work)(nil)

// Span is a time in which kernels of a device phase ran on the card, counted from
// the call of Execute.
type Span struct {
	From, To time.Duration
}

// Spans lists when kernels ran in Execute, in order, a span for each call into
// the library.
func (w *Work) Spans() []Span { return w.spans }

// Execute implements groth16.Work. Faults are of type *Error.
func (w *Work) Execute(ctx context.Context) error {
	if w.released {
		return groth16.ErrReleased
	}
	if w.sums != nil {
		return errors.New("device phase was executed before")
	}
	start := time.Now()
	w.spans = nil
	compute, err := w.device.take(ctx, w.device.compute)
	if err != nil {
		return err
	}
	defer w.device.put(w.device.compute, compute)
	p := &phase{Work: w, compute: compute, start: start}
	defer p.spareWitness()
	defer p.dropQuotient()
	if err := p.run(ctx); err != nil {
		return err
	}
	w.sums = &p.sums
	return nil
}

// phase is a device phase that is running.
type phase struct {
	*Work
	compute  handle
	start    time.Time
	quotient handle // 0 once the sums over it are done
	sums     groth16.Sums
}

// run computes the quotient and the sums, that over the quotient first, so that
// its memory is free for the others.
func (p *phase) run(ctx context.Context) error {
	if err := p.computeQuotient(ctx); err != nil {
		return err
	}
	k := p.key
	if !k.placement.resident {
		return p.runStreamed(ctx)
	}
	for i, s := range k.segments {
		if err := p.add(ctx, s, k.bases[i]); err != nil {
			return err
		}
	}
	return nil
}

// computeQuotient takes the steps of the quotient, with the witness on the card
// for those alone that need it if it cannot stay there.
func (p *phase) computeQuotient(ctx context.Context) error {
	d, k := p.device, p.key
	for _, step := range [...]struct {
		witness bool
		take    func() error
	}{
		{true, func() (err error) {
			p.quotient, err = d.api.createQuotient(p.compute, k.circuit, p.witness)
			return err
		}},
		{false, func() error { return d.api.multiplyQuotient(p.compute, p.quotient) }},
		{true, func() error { return d.api.evaluateC(p.compute, p.quotient, k.circuit, p.witness) }},
		{false, func() error { return d.api.finishQuotient(p.compute, p.quotient) }},
	} {
		if err := cause(ctx); err != nil {
			return err
		}
		if !step.witness {
			p.spareWitness()
		} else if err := p.needWitness(ctx); err != nil {
			return err
		}
		if err := step.take(); err != nil {
			return d.explain(err, "computing the quotient for %s", k.source.Name())
		}
		p.spanned()
	}
	return nil
}

// needWitness brings the witness to the card unless it is there.
func (p *phase) needWitness(ctx context.Context) (err error) {
	if p.witness == 0 {
		p.witness, err = p.device.copyWitness(ctx, p.compute, p.key, p.host)
	}
	return err
}

// spareWitness takes the witness from the card if it has no room there but while
// it is needed.
func (p *phase) spareWitness() {
	if p.key.placement.late {
		p.dropWitness()
	}
}

// slot is room for a segment of a streamed key.
type slot struct {
	segment segment
	group   group
	bases   handle
}

// runStreamed adds the segments while a goroutine copies them to the card, one
// ahead. It begins after the quotient, which has no room beside it on small cards.
func (p *phase) runStreamed(ctx context.Context) error {
	d := p.device
	free, ready := make(chan *slot, 2), make(chan *slot, 2)
	slots := [2]slot{}
	for i := range slots {
		free <- &slots[i]
	}
	defer func() {
		for i := range slots {
			d.emptySlot(&slots[i])
		}
	}()
	strands, ctx := errgroup.WithContext(ctx)
	strands.Go(func() error {
		defer close(ready)
		var filling *slot
		return d.copySegments(ctx, d.stream, p.key, func(s segment) (handle, error) {
			select {
			case filling = <-free:
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
			filling.segment = s
			return filling.bases, d.fitSlot(filling, groupOf(s.query), p.key.placement.segment)
		}, func(segment) error {
			ready <- filling
			return nil
		})
	})
	strands.Go(func() error {
		return interlock.Protect(func() error {
			for s := range ready {
				if err := p.add(ctx, s.segment, s.bases); err != nil {
					return err
				}
				free <- s
			}
			return nil
		})
	})
	return strands.Wait()
}

// fitSlot makes a slot one of the group, with room for a segment of so many points
// of G1, half as many of G2.
func (d *Device) fitSlot(s *slot, g group, points int) (err error) {
	if s.bases != 0 && s.group == g {
		return nil
	}
	d.emptySlot(s)
	capacity := points
	if g == groupG2 {
		capacity /= 2
	}
	s.group = g
	s.bases, err = d.api.createBases(d.stream, g, capacity, 1)
	return err
}

func (d *Device) emptySlot(s *slot) {
	if s.bases != 0 {
		d.api.destroyBases(s.bases)
	}
	s.bases = 0
}

// add adds what a segment gives to its query's sum.
func (p *phase) add(ctx context.Context, s segment, bases handle) error {
	if err := cause(ctx); err != nil {
		return err
	}
	var g1 bls12381.G1Affine
	var g2 bls12381.G2Affine
	var err error
	a := p.device.api
	if s.query != groth16.QueryH {
		p.dropQuotient()
		if err := p.needWitness(ctx); err != nil {
			return err
		}
	}
	switch {
	case s.query == groth16.QueryH:
		g1, err = a.sumQuotient(p.compute, p.quotient, s.from, bases, s.count)
	case groupOf(s.query) == groupG2:
		g2, err = a.sumG2(p.compute, p.key.circuit, p.witness, s.query, s.from, bases, s.count)
	default:
		g1, err = a.sumG1(p.compute, p.key.circuit, p.witness, s.query, s.from, bases, s.count)
	}
	if err != nil {
		return p.device.explain(err, "summing points %d to %d of query %s of %s", s.from, s.from+s.count, s.query, p.key.source.Name())
	}
	p.spanned()
	switch s.query {
	case groth16.QueryH:
		p.sums.H.AddMixed(&g1)
	case groth16.QueryL:
		p.sums.L.AddMixed(&g1)
	case groth16.QueryA:
		p.sums.A.AddMixed(&g1)
	case groth16.QueryBG1:
		p.sums.B1.AddMixed(&g1)
	case groth16.QueryBG2:
		p.sums.B2.AddMixed(&g2)
	}
	return nil
}

// spanned notes that kernels have just ended.
func (p *phase) spanned() {
	to := time.Since(p.start)
	p.spans = append(p.spans, Span{From: max(0, to-p.device.api.kernelTime(p.compute)), To: to})
}

func (p *phase) dropQuotient() {
	if p.quotient != 0 {
		p.device.api.destroyQuotient(p.quotient)
	}
	p.quotient = 0
}

// Finish implements groth16.Work.
func (w *Work) Finish(ctx context.Context, b groth16.Blinding) (*groth16.Proof, error) {
	switch {
	case w.released:
		return nil, groth16.ErrReleased
	case w.sums == nil:
		return nil, groth16.ErrNotExecuted
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return w.sums.Assemble(w.key.source.VerifyingKey(), b)
}

// Release implements groth16.Work.
func (w *Work) Release() {
	if w.released {
		return
	}
	w.dropWitness()
	w.device.keys.Leave(w.loaded)
	w.released, w.sums, w.loaded, w.key, w.host = true, nil, nil, nil, nil
}

func (w *Work) dropWitness() {
	if w.witness != 0 {
		w.device.api.destroyWitness(w.witness)
	}
	w.witness = 0
}
