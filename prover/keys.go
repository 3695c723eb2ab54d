package prover

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// key is an opened proving key with its verifying key. An open key takes next to
// no memory; its points, which devices keep, are residents of their budgets:
// partitions that work with them hold them, and they are evicted when others need
// the memory.
type key struct {
	set      params.Set
	file     *params.File
	vk       *groth16.PreparedVerifyingKey
	points   []keyPoints // in the order of the engine's devices
	insecure bool        // development parameters
	loadTime time.Duration

	// Under the engine's mu:
	users   int  // requests
	dropped bool // closed by the last of them
}

// keyPoints are a key's points on a device.
type keyPoints struct {
	device *device
	points *interlock.Resident // nil if the device does not keep them
	bytes  int64               // of the points alone
}

// on returns what the device keeps of the key; nothing of a lost one.
func (k *key) on(d *device) keyPoints {
	for _, p := range k.points {
		if p.device == d {
			return p
		}
	}
	return keyPoints{device: d}
}

// loaded tells whether the points are on the device.
func (p *keyPoints) loaded() bool {
	_, loaded := p.points.Users()
	return loaded
}

// key returns a circuit's parameters, which are opened once.
func (e *Engine) key(ctx context.Context, c *circuit) (*key, error) {
	return e.keys.get(ctx, &e.loading, c.blueprint, func() (*key, error) {
		k, err := e.openKey(e.ctx, c)
		if err != nil {
			return nil, err
		}
		e.log.Info("opened parameters", "set", k.set.ID, "took", k.loadTime.Round(time.Millisecond).String())
		if k.insecure {
			e.log.Warn("these are INSECURE development parameters: anyone can forge proofs for them", "file", k.file.Name())
		}
		return k, nil
	})
}

// hold returns a circuit's parameters, whose file stays open until release. A
// file that has changed since it was opened is opened anew.
func (e *Engine) hold(ctx context.Context, c *circuit) (*key, error) {
	for {
		k, err := e.key(ctx, c)
		if err != nil {
			return nil, err
		}
		changed := k.file.Changed()
		e.mu.Lock()
		if changed != nil && !k.dropped {
			e.log.Warn("opening parameters anew", "set", k.set.ID, "why", changed)
			e.drop(c.blueprint, k)
		}
		usable := !k.dropped // or it was dropped between key and here
		if usable {
			k.users++
		}
		unused := k.users == 0
		e.mu.Unlock()
		if usable {
			return k, nil
		}
		if changed != nil && unused {
			if err := e.close(k); err != nil {
				return nil, err
			}
		}
	}
}

// drop has the next request open parameters anew, under mu.
func (e *Engine) drop(b blueprint, k *key) {
	k.dropped = true
	e.keys.drop(b)
}

// distrust has parameters opened, and if configured checked, anew by the next
// request: a proof made with them did not verify. What is damaged in the file may
// be damaged without a trace in its size and time.
func (e *Engine) distrust(b blueprint, k *key) {
	e.log.Error("a proof made with these parameters does not verify; if that happens again, check them: interlock params verify "+k.file.Name(),
		"set", k.set.ID)
	if err := k.file.Forget(); err != nil {
		e.log.Warn("the record of an earlier check stays", "error", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !k.dropped {
		e.drop(b, k)
	}
}

// release undoes a hold.
func (e *Engine) release(k *key) {
	e.mu.Lock()
	k.users--
	last := k.users == 0 && k.dropped
	e.mu.Unlock()
	if last {
		if err := e.close(k); err != nil {
			e.log.Warn("closing parameters", "error", err)
		}
	}
}

// close gives everything of a key back that no request holds any more.
func (e *Engine) close(k *key) error {
	for _, p := range k.points {
		p.points.Drop()
	}
	return k.file.Close()
}

// Preload implements shared.Toolbox.
func (e *Engine) Preload(ctx context.Context, r shared.CircuitRequest) (shared.PreloadResult, error) {
	start := time.Now()
	b, err := e.blueprint(r)
	if err != nil {
		return shared.PreloadResult{}, err
	}
	loaded, err := e.preload(ctx, b)
	if err != nil {
		return shared.PreloadResult{}, atBoundary(err)
	}
	return shared.PreloadResult{AlreadyLoaded: loaded, Elapsed: time.Since(start)}, nil
}

// preload loads parameters on every device that proves and has room for them;
// not on the CPU if that only stands in for cards. It fails if they are on none
// then.
func (e *Engine) preload(ctx context.Context, b blueprint) (alreadyLoaded bool, err error) {
	c, err := e.circuit(ctx, b)
	if err != nil {
		return false, err
	}
	k, err := e.hold(ctx, c)
	if err != nil {
		return false, err
	}
	defer e.release(k)
	alreadyLoaded = true
	var without error // why the last of those that cannot have them is without
	with := 0
	for i := range k.points {
		p := &k.points[i]
		if p.device == e.cpu && !e.config.CPU.Enabled {
			continue
		}
		if err := cmp.Or(e.whyLost(p.device), p.fits(k.file, c.groth)); err != nil {
			without = err
			continue
		}
		wasLoaded := p.loaded()
		err := p.device.explain(p.load(ctx, k.file, c.groth))
		switch {
		case e.pipeline.Observe(p.device.name, err):
			without = err // the first partition that it gets loads them, if it is in use again
		case err != nil:
			return false, err
		default:
			with++
			alreadyLoaded = alreadyLoaded && wasLoaded
		}
	}
	if with == 0 && without != nil {
		return false, without
	}
	return alreadyLoaded, nil
}

func (e *Engine) whyLost(d *device) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return d.lost
}

// fits says why a device can never prove with the parameters; nil if it can.
func (p *keyPoints) fits(file *params.File, c *groth16.Circuit) error {
	claim, err := p.claim(file, c)
	return cmp.Or(err, p.device.memory.Check(claim))
}

// claim is what a partition takes of the device's memory. An error says why the
// device can never take one.
func (p *keyPoints) claim(file *params.File, c *groth16.Circuit) (interlock.Claim, error) {
	if card := p.device.card; card != nil {
		if err := card.CheckCircuit(c); err != nil {
			return interlock.Claim{}, p.device.tooLarge(err)
		}
	}
	return interlock.Claim{Bytes: p.device.Footprint(file, c).WorkBytes, With: p.points}, nil
}

// load loads the points. Where that fails, they take nothing unless somebody
// else uses them.
func (p *keyPoints) load(ctx context.Context, file *params.File, c *groth16.Circuit) error {
	memory, err := p.device.memory.Reserve(ctx, interlock.Claim{With: p.points})
	if err != nil {
		return err
	}
	err = p.device.Preload(ctx, file, c)
	memory.Release()
	if err != nil {
		p.points.Drop()
	}
	return err
}

// Evict implements shared.Toolbox.
func (e *Engine) Evict(_ context.Context, r shared.CircuitRequest) (shared.EvictResult, error) {
	b, err := e.blueprint(r)
	if err != nil {
		return shared.EvictResult{}, err
	}
	e.mu.Lock()
	k, open := e.keys.lookUp(b)
	users := 0
	if open {
		if users = k.users; users == 0 {
			e.drop(b, k)
		}
	}
	e.mu.Unlock()
	switch {
	case !open:
		return shared.EvictResult{}, nil
	case users > 0:
		return shared.EvictResult{}, &shared.BusyError{Resource: fmt.Sprintf("the parameter set %s, held by %d requests,", k.set.ID, users)}
	}
	result := shared.EvictResult{WasLoaded: true}
	for _, p := range k.points {
		if p.loaded() {
			result.FreedBytes += uint64(p.bytes)
		}
	}
	return result, e.close(k)
}

// blueprint checks a request for a circuit and says which it means.
func (e *Engine) blueprint(r shared.CircuitRequest) (blueprint, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	b, err := blueprintOf(r)
	return b, atBoundary(err)
}

// openKey maps a parameter file and compares it with its verifying key's file,
// with the circuit and with the manifest, as far as the configuration asks for.
func (e *Engine) openKey(ctx context.Context, c *circuit) (*key, error) {
	start := time.Now()
	set := c.blueprint.set()
	file, err := set.Open(e.paramsDir)
	if err != nil {
		return nil, err
	}
	k := &key{set: set, file: file, insecure: params.IsInsecureVK(file.VerifyingKey())}
	if err := e.checkKey(ctx, k, c); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	for _, d := range e.devices {
		if d.Device == nil {
			continue // it was lost from the start
		}
		p := e.placePoints(k, d, c)
		if e.pinned[c.blueprint] {
			p.points.Pin()
		}
		k.points = append(k.points, p)
	}
	k.loadTime = time.Since(start)
	return k, nil
}

// placePoints describes what a device will keep of a key. With the points comes
// what a device phase takes of the same budget: one at a time has it, so that it
// need not be counted for each partition that waits for its turn.
func (e *Engine) placePoints(k *key, d *device, c *circuit) keyPoints {
	footprint := d.Footprint(k.file, c.groth)
	p := keyPoints{device: d, bytes: footprint.KeyBytes}
	if size := p.bytes + footprint.ExecuteBytes; size > 0 {
		p.points = d.memory.NewResident("the parameters "+k.set.ID+" and a device phase with them", size, func() {
			d.Evict(k.file)
			e.log.Info("evicted parameters", "set", k.set.ID, "device", d.name, "size", config.ByteSize(p.bytes).Approx())
		})
	}
	return p
}

func (e *Engine) checkKey(ctx context.Context, k *key, c *circuit) error {
	path, vkPath := k.set.ParamsPath(e.paramsDir), k.set.VKPath(e.paramsDir)
	vk, err := k.set.ReadVK(ctx, e.paramsDir)
	if err != nil {
		return err
	}
	if !bytes.Equal(params.AppendVK(nil, vk), params.AppendVK(nil, k.file.VerifyingKey())) {
		return &params.Error{
			Path:   path,
			Reason: fmt.Sprintf("its verifying key is not the one in %s: the two files belong to different sets", vkPath),
			Remedy: "fetch both files again",
		}
	}
	for q := range groth16.Query(groth16.NumQueries) {
		if got, want := k.file.Len(q), c.groth.QueryLen(q); got != want {
			return &params.Error{
				Path:   path,
				Reason: fmt.Sprintf("query %s has %d points where the circuit needs %d: it belongs to another circuit", q, got, want),
				Remedy: "fetch the file again",
			}
		}
	}
	if e.manifest != nil {
		if err := e.manifest.CheckFile(ctx, vkPath); err != nil {
			return err
		}
	}
	if e.config.Parameters.Verify == config.CheckFull {
		if err := e.checkFully(ctx, k.file); err != nil {
			return err
		}
	}
	k.vk, err = vk.Prepare()
	if err != nil {
		return &params.Error{Path: vkPath, Reason: err.Error(), Remedy: "fetch the file again", Err: err}
	}
	return nil
}

// checkFully checks every point of a file, unless that was done for this version
// of it, and compares its digest with the manifest's.
func (e *Engine) checkFully(ctx context.Context, f *params.File) error {
	r, changed := f.Recall()
	if changed != "" {
		e.log.Warn("a parameter file is another than was checked before and is checked anew", "file", f.Name(), "before", changed)
	}
	if r == nil {
		var err error
		if r, err = f.Verify(ctx, nil); err != nil {
			return err
		}
		if err := f.Remember(r); err != nil {
			e.log.Warn("a parameter file will be checked again at the next start, since it cannot be noted that it was", "file", f.Name(), "error", err)
		}
		e.log.Info("checked every point of a parameter file", "file", f.Name(), "blake2b", r.Blake2b[:32])
	}
	if e.manifest == nil {
		return nil
	}
	return e.manifest.Check(f.Name(), r.Blake2b)
}

// readVK is the verifying key of a circuit, for verification alone.
func readVK(ctx context.Context, dir string, b blueprint) (*groth16.PreparedVerifyingKey, error) {
	vk, err := b.set().ReadVK(ctx, dir)
	if err != nil {
		return nil, err
	}
	prepared, err := vk.Prepare()
	if err != nil {
		return nil, &params.Error{Path: b.set().VKPath(dir), Reason: err.Error(), Remedy: "fetch the file again", Err: err}
	}
	return prepared, nil
}
