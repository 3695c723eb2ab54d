package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared"
)

// kindOf gives the kind of proof that a client's number means.
var kindOf = map[cuzkpb.ProofKind]shared.Kind{
	cuzkpb.ProofKind_POREP_SEAL_COMMIT:     shared.KindPoRep,
	cuzkpb.ProofKind_SNAP_DEALS_UPDATE:     shared.KindUpdate,
	cuzkpb.ProofKind_WINDOW_POST_PARTITION: shared.KindWindowPoSt,
	cuzkpb.ProofKind_WINNING_POST:          shared.KindWinningPoSt,
}

// priorityOf gives the priority that a client's number means.
var priorityOf = map[cuzkpb.Priority]shared.Priority{
	cuzkpb.Priority_PRIORITY_UNSPECIFIED: shared.PriorityUnspecified,
	cuzkpb.Priority_LOW:                  shared.PriorityLow,
	cuzkpb.Priority_NORMAL:               shared.PriorityNormal,
	cuzkpb.Priority_HIGH:                 shared.PriorityHigh,
	cuzkpb.Priority_CRITICAL:             shared.PriorityCritical,
}

// registeredSizes are the sector sizes in the order in which registered proofs count them.
var registeredSizes = []shared.SectorSize{
	shared.SectorSize2KiB, shared.SectorSize8MiB, shared.SectorSize512MiB, shared.SectorSize32GiB, shared.SectorSize64GiB,
}

// registeredFamily is a run of registered proofs, one for each of registeredSizes.
type registeredFamily struct {
	kind       shared.Kind
	first      uint64
	apiVersion string // PoSt
}

// registeredFamilies are those of the contract. Seal proofs differ in how their challenges are made, which the C1 says
// itself: V1, V1.1, synthetic, non-interactive. The prover compares it with the number.
var registeredFamilies = []registeredFamily{
	{shared.KindPoRep, 0, ""}, {shared.KindPoRep, 5, ""}, {shared.KindPoRep, 10, ""}, {shared.KindPoRep, 15, ""},
	{shared.KindWinningPoSt, 0, shared.APIVersion100},
	{shared.KindWindowPoSt, 5, shared.APIVersion100}, {shared.KindWindowPoSt, 10, shared.APIVersion120},
	{shared.KindUpdate, 0, ""},
}

// registered gives sector size and API version of a kind's registered proof.
func registered(kind shared.Kind, number uint64) (size shared.SectorSize, apiVersion string, known bool) {
	for _, f := range registeredFamilies {
		if f.kind == kind && number >= f.first && number-f.first < uint64(len(registeredSizes)) {
			return registeredSizes[number-f.first], f.apiVersion, true
		}
	}
	return 0, "", false
}

// toRequest is what a client asks for as the prover wants it, without an id. It refuses, all faults at once, what can be
// told without decoding the vanilla proofs.
func toRequest(submit *cuzkpb.SubmitProofRequest) (shared.Request, error) {
	var faults shared.Faults
	kind, known := kindOf[submit.GetProofKind()]
	if !known {
		faults.Add("proof_kind", "unknown kind of proof %d", int32(submit.GetProofKind()))
		return shared.Request{}, faults.Err()
	}
	priority, known := priorityOf[submit.GetPriority()]
	if !known {
		faults.Add("priority", "unknown priority %d", int32(submit.GetPriority()))
	}
	r := shared.Request{
		Kind:       kind,
		SectorSize: shared.SectorSize(submit.GetSectorSize()),
		Priority:   priority,
		MinerID:    submit.GetMinerId(),
		Randomness: submit.GetRandomness(),
		CommROld:   submit.GetCommROld(),
		CommRNew:   submit.GetCommRNew(),
		CommDNew:   submit.GetCommDNew(),
	}
	number := submit.GetRegisteredProof()
	size, apiVersion, known := registered(kind, number)
	switch {
	case !known:
		faults.Add("registered_proof", "%d is no registered proof of %s", number, kind)
	case r.SectorSize == 0: // Curio leaves it out of updates that it proves for others
		r.SectorSize = size
	case size != r.SectorSize:
		faults.Add("registered_proof", "%d of %s is for sectors of %s, but sector_size is %s", number, kind, size, r.SectorSize)
	}
	r.APIVersion = apiVersion
	// The contract cannot tell sector 0 from none. Only PoRep looks at the number, and its C1 has it too.
	if n := submit.GetSectorNumber(); n != 0 {
		r.SectorNumber = &n
	}
	if partition := submit.GetPartitionIndex(); kind == shared.KindWindowPoSt {
		r.Partition = &partition
	} else if partition != 0 {
		faults.Add("partition_index", "is not used by %s", kind)
	}
	if kind == shared.KindPoRep {
		if len(submit.GetVanillaProofs()) > 0 {
			faults.Add("vanilla_proofs", "is not used by %s, whose C1 goes into vanilla_proof", kind)
		}
		r.Vanilla = [][]byte{submit.GetVanillaProof()}
		r.RegisteredProof = &number
	} else {
		if len(submit.GetVanillaProof()) > 0 {
			faults.Add("vanilla_proof", "is not used by %s, whose vanilla proofs go into vanilla_proofs", kind)
		}
		r.Vanilla = submit.GetVanillaProofs()
	}
	if err := faults.Err(); err != nil {
		return r, err
	}
	return r, r.Validate()
}

// content is a digest of a whole request.
type content [sha256.Size]byte

// contentOf digests a request: each field, each with its length where it has one, so that no two requests are written
// alike.
func contentOf(submit *cuzkpb.SubmitProofRequest) content {
	h := sha256.New()
	number := func(n uint64) { h.Write(binary.BigEndian.AppendUint64(nil, n)) }
	bytes := func(b []byte) {
		number(uint64(len(b)))
		if len(b) <= hashedAtOnce {
			h.Write(b)
			return
		}
		for _, sum := range sumsOf(b) {
			h.Write(sum[:])
		}
	}

	bytes([]byte(submit.GetRequestId()))
	number(uint64(submit.GetProofKind()))
	number(submit.GetSectorSize())
	number(submit.GetRegisteredProof())
	number(uint64(submit.GetPriority()))
	bytes(submit.GetVanillaProof())
	number(uint64(len(submit.GetVanillaProofs())))
	for _, v := range submit.GetVanillaProofs() {
		bytes(v)
	}
	number(submit.GetSectorNumber())
	number(submit.GetMinerId())
	bytes(submit.GetRandomness())
	number(uint64(submit.GetPartitionIndex()))
	bytes(submit.GetCommROld())
	bytes(submit.GetCommRNew())
	bytes(submit.GetCommDNew())
	return content(h.Sum(nil))
}

// hashedAtOnce is how much of a field is hashed by one core.
const hashedAtOnce = 4 << 20

// sumsOf hashes each hashedAtOnce of b, on all cores: a C1 of 50 MB takes one of them 30 ms, a sixth of its way through
// the gateway.
func sumsOf(b []byte) [][sha256.Size]byte {
	sums := make([][sha256.Size]byte, (len(b)+hashedAtOnce-1)/hashedAtOnce)
	var hashing sync.WaitGroup
	for i, part := range slices.Collect(slices.Chunk(b, hashedAtOnce)) {
		hashing.Go(func() { sums[i] = sha256.Sum256(part) })
	}
	hashing.Wait()
	return sums
}

// jobID names the job of a request: the same one for the same request, after a restart too, and another one for any
// other. A request without an id has a job of its own, so it gets a random one.
func jobID(requestID string, c content) string {
	if requestID == "" {
		return "request." + rand.Text()
	}
	return printable(requestID) + "." + hex.EncodeToString(c[:8])
}

// maxNameBytes is how much of a client's request id is part of a job's.
const maxNameBytes = 200

// printable makes a client's request id fit to be part of an id of the prover's, which is printable and has no comma.
func printable(requestID string) string {
	name := strings.Map(func(c rune) rune {
		if c == ',' || c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return '_'
		}
		return c
	}, requestID)
	for len(name) > maxNameBytes {
		name = name[:len(name)-1]
	}
	return strings.ToValidUTF8(name, "")
}

// circuitKinds are the names of kinds in circuit ids such as "wpost-32g".
var circuitKinds = map[string]shared.Kind{
	"porep": shared.KindPoRep, "snap": shared.KindUpdate, "wpost": shared.KindWindowPoSt, "winning": shared.KindWinningPoSt,
}

// circuitID is the contract's name of a circuit.
func circuitID(kind shared.Kind, size shared.SectorSize) string {
	name := kind.String()
	for n, k := range circuitKinds {
		if k == kind {
			name = n
		}
	}
	return name + "-" + strings.ToLower(strings.TrimSuffix(size.String(), "iB"))
}

// parseCircuitID is the inverse of circuitID.
func parseCircuitID(id string) (shared.CircuitRequest, error) {
	for _, kind := range shared.Kinds() {
		for _, size := range shared.SectorSizes() {
			if circuitID(kind, size) == id {
				return shared.CircuitRequest{Kind: kind, SectorSize: size}, nil
			}
		}
	}
	return shared.CircuitRequest{}, &shared.InvalidRequestError{
		Field:  "circuit_id",
		Reason: fmt.Sprintf("%q is no circuit; names are such as porep-32g, snap-32g, wpost-32g, winning-32g", id),
	}
}
