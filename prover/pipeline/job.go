package pipeline

import (
	"context"
	"time"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// Job is a decoded and completely checked request. Partitions is called first, then Load; the other methods only after
// Load succeeded. Several partitions' methods may run at once. What they panic with fails their request alone.
type Job interface {
	// Partitions is the number of circuit instances, at least one.
	Partitions() int

	// Load gets the circuit and the parameters ready, both shared with other jobs.
	Load(ctx context.Context) error

	// HostMemory is what one partition takes of the host's memory from before Witness until its [Phase] is released, and
	// what it shares with other partitions meanwhile, such as parameters, which are loaded only then. It is asked for
	// partitions on any of the devices, and for those on the fallback if there is one, which take no less.
	HostMemory(fallback bool) interlock.Claim

	// Witness computes the witness of partition k. It should return soon after ctx ends.
	Witness(ctx context.Context, k int) (Witness, error)

	// Verify checks the whole proof, one for each partition in order, with the verifying key. A proof that does not
	// hold is a *shared.ProofInvalidError, with the partitions at fault if that can be told; any other error means that
	// it could not be checked.
	Verify(ctx context.Context, proofs [][]byte) error

	// Insecure tells that the parameters are development parameters.
	Insecure() bool

	// Close is called once, when no other method runs any more.
	Close()
}

// Witness is what a Job hands to a Device; only those two know what it is. The pipeline owns it.
type Witness interface {
	// Release gives its memory back. It is called once: after the Release of the Phase that it was lent to, or when the
	// partition comes to no Phase. No worker waits for it.
	Release()
}

// Device computes proofs. Its methods may run at once, for its workers' partitions. An error or a panic fails the
// partition, which is tried once on another device. An error that holds a [*DeviceFaultError] takes the device out of
// use until it passes a self-test, and the partition is tried again even if there is no other, several times if nothing
// may stand in for it; one that holds a [*DeviceLostError] takes it out for good.
type Device interface {
	// Name identifies the device in timelines, status and logs.
	Name() string

	// Memory is what a partition of the job takes of the device's budget from before Prepare until its Phase is
	// released, and what it shares with other partitions meanwhile. An error says why the device can never take one.
	Memory(job Job) (interlock.Claim, error)

	// Probe is a self-test: it returns nil if the device computes right. It is called while the device is out of use. One
	// that takes longer than a minute makes the device a lost one.
	Probe(ctx context.Context) error

	// Prepare does all that needs no lock before the device phase. The witness is lent to the Phase until its Release,
	// or to Prepare until it fails.
	Prepare(ctx context.Context, job Job, k int, w Witness) (Phase, error)
}

// Phase is a partition on a device. Its methods are called one at a time.
type Phase interface {
	// Execute is the device phase. It alone runs under the device's interlock.
	Execute(ctx context.Context) error

	// Finish does what is left after the device phase and gives the partition's proof.
	Finish(ctx context.Context) (proof []byte, err error)

	// Release gives memory back. It is called once, whatever became of the partition, by a goroutine that no worker
	// waits for.
	Release()
}

// Measured is a Phase that knows more of its times than its callers see: when its kernels ran by the device's clock, or
// when the CPU worked on B in G2. It is asked once, after Finish or whatever failed before, and what it says goes into
// the timeline.
type Measured interface {
	Measurements() []Measurement
}

// Measurement is a time span within a partition's passage, counted from when Execute was called.
type Measurement struct {
	Start    timeline.Kind // the kind that begins the phase, such as timeline.KernelStart
	From, To time.Duration
}
