package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
)

// key is what a device has of a proving key, or is loading: the circuit and, if
// the key is resident, all segments of its points.
type key struct {
	source    groth16.Source
	placement placement
	segments  []segment

	circuit handle
	bases   []handle // of the segments; none if the key is streamed
}

// loadedKey is a key that stays until it is left.
type loadedKey = interlock.Load[groth16.Source, *key]

// load returns a key, loading it at most once however many callers ask for it at
// the same time. It stays at least until it is left; a streamed one no longer.
func (d *Device) load(ctx context.Context, source groth16.Source, c *groth16.Circuit) (*loadedKey, error) {
	if err := d.checkKey(source, c); err != nil {
		return nil, err
	}
	loaded, err := d.keys.Get(ctx, source, func() (*key, error) {
		k := &key{source: source}
		return k, interlock.Protect(func() error { return d.read(ctx, k, c) }) // what is there is freed even then
	})
	if errors.Is(err, interlock.ErrLoadsClosed) {
		err = fmt.Errorf("%s: %w", d.name, errClosed)
	}
	return loaded, err
}

// checkKey returns an error if a key is not the circuit's, or that is too large
// for the card.
func (d *Device) checkKey(source groth16.Source, c *groth16.Circuit) error {
	if err := c.CheckKey(source); err != nil {
		return err
	}
	return d.explain(d.plan.check(c), "making room for %s", source.Name())
}

// Evict implements groth16.Device.
func (d *Device) Evict(source groth16.Source) { d.keys.Evict(source) }

// free gives back what a key has on the card.
func (d *Device) free(k *key) {
	for _, b := range k.bases {
		d.api.destroyBases(b)
	}
	if k.circuit != 0 {
		d.api.destroyCircuit(k.circuit)
	}
	k.bases, k.circuit = nil, 0
}

// read brings the circuit to the card and, if they stay there, the points.
func (d *Device) read(ctx context.Context, k *key, c *groth16.Circuit) error {
	k.placement, _ = d.plan.place(sizesOf(c)) // load has checked that there is one
	k.segments = segments(c, k.placement.segment)
	d.tellLate(k, c)
	context, err := d.take(ctx, d.uploads)
	if err != nil {
		return err
	}
	defer d.put(d.uploads, context)
	if k.circuit, err = d.api.createCircuit(context, c.System.Flat(), c.Domain); err != nil {
		return d.explain(err, "copying the circuit of %s", k.source.Name())
	}
	if took, counted := d.api.circuitBytes(k.circuit), circuitBytes(c.System.Flat()); took > counted {
		d.log.Warn("a circuit takes more of a card than was counted", "device", d.name, "key", k.source.Name(), "bytes", took, "counted", counted)
	}
	if !k.placement.resident {
		return nil
	}
	return d.copySegments(ctx, context, k, func(s segment) (handle, error) {
		b, err := d.api.createBases(context, groupOf(s.query), s.count, k.placement.multiples)
		if err == nil {
			k.bases = append(k.bases, b)
		}
		return b, err
	}, nil)
}

// tellLate logs, once for each key, that proofs take longer than they would on a
// card with more memory.
func (d *Device) tellLate(k *key, c *groth16.Circuit) {
	if !k.placement.late {
		return
	}
	if _, told := d.told.LoadOrStore(k.source.Name(), nil); !told {
		d.log.Info("a witness has no room beside device phases: it is copied three times a proof, in its own; a larger memory_limit avoids that",
			"device", d.name, "key", k.source.Name(), "witness", gib(c.System.Layout().Bytes()), "keys_and_witnesses", gib(d.plan.budgetBytes()))
	}
}

// chunk is a part of a segment on its way to the card.
type chunk struct {
	segment   segment
	at, count int
	encoded   []byte // in a pinned buffer
}

// copySegments copies the segments of a key to the card, one after the other: a
// goroutine reads the key into pinned buffers, this one copies them. room is
// asked where a segment goes when it begins, and filled, unless nil, told when
// it is there. Where copying fails, nothing more is read.
func (d *Device) copySegments(ctx context.Context, h handle, k *key, room func(s segment) (handle, error), filled func(s segment) error) error {
	if err := d.pinned.fill(d, h); err != nil {
		return err
	}
	chunks := make(chan chunk, pinnedBuffers)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var readErr error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(chunks)
		readErr = interlock.Protect(func() error { return d.readChunks(reading, k, chunks) })
	})
	err := d.copyChunks(ctx, h, k, chunks, room, filled)
	stop() // what is still being read would be in vain
	for c := range chunks {
		d.pinned.put(c.encoded)
	}
	reader.Wait()
	return cmp.Or(err, readErr)
}

// copyChunks copies chunks to the card, until there are no more or ctx ends.
func (d *Device) copyChunks(ctx context.Context, h handle, k *key, chunks <-chan chunk, room func(s segment) (handle, error), filled func(s segment) error) error {
	var bases handle
	for c := range chunks {
		err := cause(ctx)
		if err == nil {
			err = interlock.Protect(func() (err error) {
				if c.at == 0 {
					if bases, err = room(c.segment); err != nil {
						return d.explain(err, "making room for query %s of %s", c.segment.query, k.source.Name())
					}
				}
				first := c.segment.from + c.at
				err = d.api.loadBases(h, bases, c.at, c.count, c.encoded)
				return damaged(d.explain(err, "copying points %d to %d of query %s of %s", first, first+c.count, c.segment.query, k.source.Name()))
			})
		}
		d.pinned.put(c.encoded)
		if err == nil && filled != nil && c.at+c.count == c.segment.count {
			err = filled(c.segment)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// damaged adds to an error in copying points that the key is at fault if the
// library refused them: the ranges are right, so it is a point that is not one.
func damaged(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) && e.Kind == BadArgument {
		return fmt.Errorf("%w: %w", &groth16.IncompatibleError{Reason: e.Doing + ": " + e.Message}, err)
	}
	return err
}

// readChunks reads the segments of a key into pinned buffers. A Source reads with
// all cores.
func (d *Device) readChunks(ctx context.Context, k *key, chunks chan<- chunk) error {
	for _, s := range k.segments {
		size := s.query.PointBytes()
		most := d.plan.pinnedBytes / size
		for at := 0; at < s.count; at += most {
			buffer, err := d.pinned.take(ctx)
			if err != nil {
				return err
			}
			n := min(most, s.count-at)
			c := chunk{segment: s, at: at, count: n, encoded: buffer[:n*size]}
			if err := k.source.ReadEncoded(ctx, s.query, s.from+at, c.encoded); err != nil {
				d.pinned.put(buffer)
				return err
			}
			select {
			case chunks <- c:
			case <-ctx.Done():
				d.pinned.put(buffer)
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// pinnedBuffers let reading, copying and waiting for room overlap.
const pinnedBuffers = 4

// pinnedPool is page-locked host memory, which copies at the full rate of the
// link. It is made when a key is first copied: making it takes tens of
// milliseconds.
type pinnedPool struct {
	mu    sync.Mutex
	all   [][]byte
	ready chan []byte // not nil once all are there
}

// fill makes the buffers unless they are there.
func (p *pinnedPool) fill(d *Device, h handle) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready == nil {
		p.ready = make(chan []byte, pinnedBuffers)
	}
	for len(p.all) < pinnedBuffers {
		b, err := d.api.allocHost(h, d.plan.pinnedBytes)
		if err != nil {
			return d.explain(err, "page-locking host memory for copies")
		}
		p.all = append(p.all, b)
		p.ready <- b
	}
	return nil
}

// take takes a buffer, waiting until one is there.
func (p *pinnedPool) take(ctx context.Context) ([]byte, error) {
	select {
	case b := <-p.ready:
		return b, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// put gives a buffer back, or a part of one that begins where it does.
func (p *pinnedPool) put(b []byte) { p.ready <- b[:cap(b)] }

// free gives the host its memory back. Nobody may have a buffer.
func (p *pinnedPool) free(d *Device, h handle) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, b := range p.all {
		errs = append(errs, d.explain(d.api.freeHost(h, b), "giving page-locked host memory back"))
	}
	p.all, p.ready = nil, nil
	return errors.Join(errs...)
}
