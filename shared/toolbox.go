package shared

import (
	"context"
	"time"
)

// Toolbox is what the operator's tool needs of the proving code beside proofs. It is done in the plugin process, so that
// nobody else links circuits. All methods may be called from any number of goroutines; progress functions follow the
// rules of [Prover.Prove].
type Toolbox interface {
	// Verify tells whether proof is a valid proof for what request describes. The error says why it could not be told.
	Verify(ctx context.Context, request Request, proof []byte) (valid bool, err error)

	// SetupParams makes development parameters from fixed toxic waste: whoever knows that can forge proofs.
	SetupParams(ctx context.Context, request SetupRequest, progress func(Progress)) (SetupResult, error)

	// CheckParams reads a whole parameter file and checks its structure and every point. What is wrong with the file is
	// reported as [*ParamsError]; so is a digest that is not the one in the configured manifest.
	CheckParams(ctx context.Context, path string, progress func(Progress)) (ParamsReport, error)

	// CircuitDigest compiles a circuit and digests its constraints.
	CircuitDigest(ctx context.Context, request CircuitRequest, progress func(Progress)) (CircuitDigest, error)

	// Preload loads a circuit's parameters, so that its next request does not wait for them.
	Preload(ctx context.Context, request CircuitRequest) (PreloadResult, error)

	// Evict drops a circuit's parameters. It fails with a [*BusyError] while requests use them.
	Evict(ctx context.Context, request CircuitRequest) (EvictResult, error)

	// Bench runs a benchmark and gives its output line by line; no line is left out.
	Bench(ctx context.Context, request BenchRequest, out func(line string)) error
}

// validateVerify checks a request and the proof to be verified against it, as if the vanilla proofs had the given sizes.
func validateVerify(r *Request, vanillaBytes []uint64, proof []byte) error {
	var faults Faults
	r.validate(vanillaBytes, &faults)
	if len(proof) > MaxProofBytes {
		faults.Add("proof", "has %d bytes, more than the %d a proof may have", len(proof), MaxProofBytes)
	}
	return faults.Err()
}

// maxPartitions bounds what a circuit may be divided into; non-interactive PoRep has 126.
const maxPartitions = 1 << 10

// CircuitRequest names a circuit.
type CircuitRequest struct {
	Kind       Kind
	SectorSize SectorSize
	Partitions int // PoRep: partitions of a proof, which decide the challenges of one; 0 is the size's default
}

// Validate reports all faults at once, as [Request.Validate] does.
func (r CircuitRequest) Validate() error {
	var faults Faults
	r.validate(&faults)
	return faults.Err()
}

func (r CircuitRequest) validate(faults *Faults) {
	if !r.Kind.Valid() {
		faults.Add("kind", "unknown kind of proof %d", uint8(r.Kind))
	}
	if err := r.SectorSize.Validate(); err != nil {
		faults.Add("sector_size", "%v", err)
	}
	switch {
	case r.Partitions < 0:
		faults.Add("partitions", "is negative: %d", r.Partitions)
	case r.Partitions > maxPartitions:
		faults.Add("partitions", "%d are more than %d", r.Partitions, maxPartitions)
	case r.Partitions > 0 && r.Kind.Valid() && r.Kind != KindPoRep:
		faults.Add("partitions", "is not used by %s", r.Kind)
	}
}

// SetupRequest names a circuit and where its development parameters go.
type SetupRequest struct {
	CircuitRequest
	Dir string
}

// Validate reports all faults at once, as [Request.Validate] does.
func (r SetupRequest) Validate() error {
	var faults Faults
	r.validate(&faults)
	if r.Dir == "" {
		faults.Add("dir", "no directory given")
	}
	return faults.Err()
}

// SetupResult says what a setup wrote.
type SetupResult struct {
	ParamsPath, VKPath     string
	ParamsSHA256, VKSHA256 string // hex
	ParamsBytes, VKBytes   int64
	Elapsed                time.Duration
}

// ParamsReport describes a parameter file in which nothing wrong was found.
type ParamsReport struct {
	Path         string
	ParameterSet string // the part of the file's name that varies between circuits
	Bytes        int64
	SHA256       string // hex
	Blake2b      string // first 32 hex digits of the Blake2b-512 digest, as the public manifest gives it
	Insecure     bool   // development parameters

	// Kind and SectorSize are those of the circuit that the parameters are for, as the file's name says; zero if it says
	// none.
	Kind       Kind
	SectorSize SectorSize
	// Listed says that a manifest is configured and the file's digest is the one it gives.
	Listed bool
	// Leftovers are temporary files of the same name beside it, which a setup that was killed left. The next setup in the
	// directory removes them.
	Leftovers []string

	// Lengths of the lists: IC of the verifying key, then H, L, A, B in G1, B in G2, without points at infinity.
	IC, H, L, A, BG1, BG2 int

	Elapsed time.Duration
}

// CircuitDigest describes a constraint system. Its JSON is that of the reference data, field for field.
type CircuitDigest struct {
	Aux          int          `json:"aux"`
	Chunk        int          `json:"chunk"`  // constraints in a chunk
	Chunks       []string     `json:"chunks"` // hex SHA-256 of each chunk of constraints
	Constraints  int          `json:"constraints"`
	Digest       string       `json:"digest"`
	Inputs       int          `json:"inputs"`
	Kind         string       `json:"kind"` // as the reference data names it: porep, winning, window, update
	ParameterSet string       `json:"parameter_set"`
	Partitions   int          `json:"partitions,omitempty"`
	SectorSize   SectorSize   `json:"sector_size"`
	Terms        CircuitTerms `json:"terms"`
}

// CircuitTerms counts the non-zero terms of the matrices A, B and C.
type CircuitTerms struct {
	A int `json:"a"`
	B int `json:"b"`
	C int `json:"c"`
}

// PreloadResult says what loading a circuit's parameters ahead of their first use did.
type PreloadResult struct {
	AlreadyLoaded bool
	Elapsed       time.Duration
}

// EvictResult says what dropping a circuit's parameters did.
type EvictResult struct {
	WasLoaded  bool
	FreedBytes uint64
}

// BenchRequest names a benchmark and its arguments.
type BenchRequest struct {
	Name string
	Args []string
}
