// Package sharedtest has a scriptable prover and toolbox for tests of whatever stands on package shared. It knows
// nothing of proving.
package sharedtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// Mock is a [shared.Plugin] that does what its functions say. A call whose function is nil fails.
type Mock struct {
	OnProve         func(context.Context, shared.Request, func(shared.Progress)) (shared.Result, error)
	OnSubmit        func(context.Context, shared.Request) (shared.JobID, error)
	OnAwait         func(context.Context, shared.JobID) (shared.Result, error)
	OnCancel        func(context.Context, shared.JobID) (bool, error)
	OnStatus        func(context.Context) (shared.Status, error)
	OnTimeline      func(context.Context) (timeline.Recording, error)
	OnVerify        func(context.Context, shared.Request, []byte) (bool, error)
	OnSetupParams   func(context.Context, shared.SetupRequest, func(shared.Progress)) (shared.SetupResult, error)
	OnCheckParams   func(context.Context, string, func(shared.Progress)) (shared.ParamsReport, error)
	OnCircuitDigest func(context.Context, shared.CircuitRequest, func(shared.Progress)) (shared.CircuitDigest, error)
	OnPreload       func(context.Context, shared.CircuitRequest) (shared.PreloadResult, error)
	OnEvict         func(context.Context, shared.CircuitRequest) (shared.EvictResult, error)
	OnBench         func(context.Context, shared.BenchRequest, func(string)) error
	OnClose         func() error

	mu    sync.Mutex
	calls []string
}

var _ shared.Plugin = (*Mock)(nil)

// Calls gives the names of the methods called so far, in order.
func (m *Mock) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.calls...)
}

// called notes a call, and fails if nothing is scripted for it.
func (m *Mock) called(method string, scripted bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, method)
	if !scripted {
		return fmt.Errorf("the mock has no script for %s", method)
	}
	return nil
}

// Prove implements [shared.Prover], as the methods below do.
func (m *Mock) Prove(ctx context.Context, request shared.Request, progress func(shared.Progress)) (shared.Result, error) {
	if err := m.called("Prove", m.OnProve != nil); err != nil {
		return shared.Result{}, err
	}
	return m.OnProve(ctx, request, progress)
}

// Submit calls OnSubmit.
func (m *Mock) Submit(ctx context.Context, request shared.Request) (shared.JobID, error) {
	if err := m.called("Submit", m.OnSubmit != nil); err != nil {
		return "", err
	}
	return m.OnSubmit(ctx, request)
}

// Await calls OnAwait.
func (m *Mock) Await(ctx context.Context, job shared.JobID) (shared.Result, error) {
	if err := m.called("Await", m.OnAwait != nil); err != nil {
		return shared.Result{}, err
	}
	return m.OnAwait(ctx, job)
}

// Cancel calls OnCancel.
func (m *Mock) Cancel(ctx context.Context, job shared.JobID) (bool, error) {
	if err := m.called("Cancel", m.OnCancel != nil); err != nil {
		return false, err
	}
	return m.OnCancel(ctx, job)
}

// Status calls OnStatus.
func (m *Mock) Status(ctx context.Context) (shared.Status, error) {
	if err := m.called("Status", m.OnStatus != nil); err != nil {
		return shared.Status{}, err
	}
	return m.OnStatus(ctx)
}

// Timeline calls OnTimeline.
func (m *Mock) Timeline(ctx context.Context) (timeline.Recording, error) {
	if err := m.called("Timeline", m.OnTimeline != nil); err != nil {
		return timeline.Recording{}, err
	}
	return m.OnTimeline(ctx)
}

// Verify implements [shared.Toolbox], as the methods below do.
func (m *Mock) Verify(ctx context.Context, request shared.Request, proof []byte) (bool, error) {
	if err := m.called("Verify", m.OnVerify != nil); err != nil {
		return false, err
	}
	return m.OnVerify(ctx, request, proof)
}

// SetupParams calls OnSetupParams.
func (m *Mock) SetupParams(ctx context.Context, request shared.SetupRequest, progress func(shared.Progress)) (shared.SetupResult, error) {
	if err := m.called("SetupParams", m.OnSetupParams != nil); err != nil {
		return shared.SetupResult{}, err
	}
	return m.OnSetupParams(ctx, request, progress)
}

// CheckParams calls OnCheckParams.
func (m *Mock) CheckParams(ctx context.Context, path string, progress func(shared.Progress)) (shared.ParamsReport, error) {
	if err := m.called("CheckParams", m.OnCheckParams != nil); err != nil {
		return shared.ParamsReport{}, err
	}
	return m.OnCheckParams(ctx, path, progress)
}

// CircuitDigest calls OnCircuitDigest.
func (m *Mock) CircuitDigest(ctx context.Context, request shared.CircuitRequest, progress func(shared.Progress)) (shared.CircuitDigest, error) {
	if err := m.called("CircuitDigest", m.OnCircuitDigest != nil); err != nil {
		return shared.CircuitDigest{}, err
	}
	return m.OnCircuitDigest(ctx, request, progress)
}

// Preload calls OnPreload.
func (m *Mock) Preload(ctx context.Context, request shared.CircuitRequest) (shared.PreloadResult, error) {
	if err := m.called("Preload", m.OnPreload != nil); err != nil {
		return shared.PreloadResult{}, err
	}
	return m.OnPreload(ctx, request)
}

// Evict calls OnEvict.
func (m *Mock) Evict(ctx context.Context, request shared.CircuitRequest) (shared.EvictResult, error) {
	if err := m.called("Evict", m.OnEvict != nil); err != nil {
		return shared.EvictResult{}, err
	}
	return m.OnEvict(ctx, request)
}

// Bench calls OnBench.
func (m *Mock) Bench(ctx context.Context, request shared.BenchRequest, out func(string)) error {
	if err := m.called("Bench", m.OnBench != nil); err != nil {
		return err
	}
	return m.OnBench(ctx, request, out)
}

// Close implements [shared.Plugin]; without a script it succeeds.
func (m *Mock) Close() error {
	m.mu.Lock()
	m.calls = append(m.calls, "Close")
	m.mu.Unlock()
	if m.OnClose == nil {
		return nil
	}
	return m.OnClose()
}
