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
	if err != nil {
		return nil, atBoundary(err)
	}
	r.Vanilla = nil // the statement is all that is left to prove
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

// HostMemory implements pipeline.Job: the witness and, while the device is the
// CPU, what it keeps of it.
func (j *job) HostMemory() interlock.Claim {
	footprint := j.engine.device.Footprint(j.key.file, j.circuit.groth)
	return interlock.Claim{Bytes: j.circuit.groth.System.Layout().Bytes() + footprint.WorkBytes, With: j.key.points}
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

// Release implements pipeline.Witness: what still points to the assignment keeps
// none of its memory.
func (a *assignment) Release() { a.Witness = nil }

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

// device is a groth16.Device as the pipeline sees it.
type device struct {
	groth16.Device
	blind blinder
}

// blinder gives the blinding of partition k's proof. Only tests give another
// than randomBlinding.
type blinder func(k int) (groth16.Blinding, error)

func randomBlinding(int) (groth16.Blinding, error) { return groth16.NewBlinding() }

var _ pipeline.Device = (*device)(nil)

// WorkBytes implements pipeline.Device. The CPU device's memory is the host's,
// which job.HostMemory counts.
func (d *device) WorkBytes(pipeline.Job) int64 { return 0 }

// Prepare implements pipeline.Device.
func (d *device) Prepare(ctx context.Context, pj pipeline.Job, k int, pw pipeline.Witness) (pipeline.Phase, error) {
	j, w := pj.(*job), pw.(*assignment) // both made in this package
	work, err := d.Device.Prepare(ctx, j.key.file, j.circuit.groth, w.Witness)
	if err != nil {
		return nil, atBoundary(err)
	}
	return &phase{Work: work, k: k, blind: d.blind}, nil
}

// phase is one partition on a device.
type phase struct {
	groth16.Work
	k     int
	blind blinder
}

// Finish implements pipeline.Phase.
func (p *phase) Finish(ctx context.Context) ([]byte, error) {
	b, err := p.blind(p.k)
	if err != nil {
		return nil, err
	}
	proof, err := p.Work.Finish(ctx, b)
	if err != nil {
		return nil, err
	}
	encoded := proof.Bytes()
	return encoded[:], nil
}
