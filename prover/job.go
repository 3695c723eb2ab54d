package prover

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/pipeline"
	"github.com/interlock-prover/interlock/prover/witness"
	"github.com/interlock-prover/interlock/shared"
)

// job is a decoded and checked request, as the pipeline sees it.
type job struct {
	engine    *Engine
	id        string
	statement statement

	// Set by Load.
	circuit *circuit
	key     *key
}

var _ pipeline.Job = (*job)(nil)

// openJob decodes a request and checks it completely.
func (e *Engine) openJob(ctx context.Context, r *shared.Request) (pipeline.Job, error) {
	s, err := decode(ctx, r)
	r.Release() // the statement is all that is left to prove
	if err != nil {
		return nil, atBoundary(err)
	}
	if err := s.check(ctx); err != nil {
		return nil, atBoundary(err)
	}
	return &job{engine: e, id: r.ID, statement: s}, nil
}

// Partitions implements pipeline.Job.
func (j *job) Partitions() int { return j.statement.partitions() }

// Load implements pipeline.Job: it compiles the circuit and opens the
// parameters, or finds both where another request left them.
func (j *job) Load(ctx context.Context) error {
	var err error
	if j.circuit, err = j.engine.circuit(ctx, j.statement.blueprint()); err != nil {
		return err
	}
	j.key, err = j.engine.hold(ctx, j.circuit)
	return atBoundary(err)
}

// HostMemory implements pipeline.Job: the witness and, where the CPU may be the
// device, what it takes.
func (j *job) HostMemory(fallback bool) interlock.Claim {
	claim := interlock.Claim{Bytes: j.circuit.groth.System.Layout().Bytes()}
	if cpu := j.engine.cpu; cpu != nil && (fallback || j.engine.config.CPU.Enabled) {
		claim.Bytes += cpu.Footprint(j.key.file, j.circuit.groth).WorkBytes
		claim.With = j.key.on(cpu).points
	}
	return claim
}

// Witness implements pipeline.Job.
func (j *job) Witness(ctx context.Context, k int) (pipeline.Witness, error) {
	w, err := j.statement.witness(ctx, j.circuit.compiled, k)
	if err != nil {
		return nil, err
	}
	return &assignment{w}, nil
}

// assignment is a witness as the pipeline sees it.
type assignment struct{ *witness.Witness }

// Release implements pipeline.Witness.
func (a *assignment) Release() { a.Free() }

// Verify implements pipeline.Job: the self-check.
func (j *job) Verify(_ context.Context, encoded [][]byte) error {
	proofs := make([]groth16.Proof, len(encoded))
	for k, b := range encoded {
		p, err := groth16.ParseProof(b)
		if err != nil {
			return j.invalid([]int{k}, err.Error()+", "+j.reproduction([]int{k}, encoded))
		}
		proofs[k] = *p
	}
	ok, err := j.key.vk.VerifyBatch(allPublicInputs(j.statement), proofs)
	if err != nil || ok {
		return err
	}
	var at []int
	for k := range proofs {
		ok, err := j.key.vk.Verify(j.statement.publicInputs(k), &proofs[k])
		if err != nil {
			return err
		}
		if !ok {
			at = append(at, k)
		}
	}
	return j.invalid(at, j.reproduction(at, encoded))
}

// reproduction is what tells a wrong proof from another fault: with the request
// and the verifying key each pair below can be verified again, or made again.
// Only a digest of the public inputs is given, which the request determines.
func (j *job) reproduction(at []int, encoded [][]byte) string {
	text := "parameters " + j.key.file.Name()
	for _, k := range at {
		h := sha256.New()
		for _, x := range j.statement.publicInputs(k) {
			b := x.Bytes()
			h.Write(b[:])
		}
		text += fmt.Sprintf(", partition %d: proof %x of public inputs with SHA-256 %x", k, encoded[k], h.Sum(nil))
	}
	return text
}

func (j *job) invalid(partitions []int, detail string) error {
	j.engine.distrust(j.circuit.blueprint, j.key)
	return &shared.ProofInvalidError{RequestID: j.id, Partitions: partitions, Detail: detail}
}

// Insecure implements pipeline.Job.
func (j *job) Insecure() bool { return j.key.insecure }

// Close implements pipeline.Job.
func (j *job) Close() {
	if j.key != nil {
		j.engine.release(j.key)
	}
}
