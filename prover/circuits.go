package prover

import (
	"context"
	"sync"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
)

// circuit is a compiled circuit.
type circuit struct {
	blueprint blueprint
	compiled  compiled
	groth     *groth16.Circuit
}

func compile(b blueprint) (*circuit, error) {
	c := b.compile()
	g, err := groth16.NewCircuit(c.system())
	if err != nil {
		return nil, err
	}
	return &circuit{blueprint: b, compiled: c, groth: g}, nil
}

// once makes a value for each key at its first use and keeps it. Callers of the
// same key wait for the one that makes it; if that fails, the next one tries
// again.
type once[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]*onceEntry[V]
}

type onceEntry[V any] struct {
	ready chan struct{} // closed when value and err are there
	value V
	err   error
}

// get returns the key's value. produce runs in a goroutine of its own, so that a
// caller whose ctx ends does not take the value from the others.
func (o *once[K, V]) get(ctx context.Context, wg *sync.WaitGroup, key K, produce func() (V, error)) (V, error) {
	o.mu.Lock()
	e, ok := o.entries[key]
	if !ok {
		if o.entries == nil {
			o.entries = map[K]*onceEntry[V]{}
		}
		e = &onceEntry[V]{ready: make(chan struct{})}
		o.entries[key] = e
		wg.Go(func() {
			defer close(e.ready)
			e.err = interlock.Protect(func() (err error) { e.value, err = produce(); return err })
			if e.err != nil {
				o.mu.Lock()
				delete(o.entries, key)
				o.mu.Unlock()
			}
		})
	}
	o.mu.Unlock()
	select {
	case <-e.ready:
		return e.value, e.err
	case <-ctx.Done():
		var none V
		return none, context.Cause(ctx)
	}
}

// lookUp returns the key's value if it is ready.
func (o *once[K, V]) lookUp(key K) (V, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none V
	e, ok := o.entries[key]
	if !ok {
		return none, false
	}
	select {
	case <-e.ready:
		return e.value, e.err == nil
	default:
		return none, false
	}
}

// drop forgets the key's value, which was ready.
func (o *once[K, V]) drop(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.entries, key)
}

// values lists the values that are ready.
func (o *once[K, V]) values() []V {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []V
	for _, e := range o.entries {
		select {
		case <-e.ready:
			if e.err == nil {
				out = append(out, e.value)
			}
		default:
		}
	}
	return out
}
