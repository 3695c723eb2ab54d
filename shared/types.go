package shared

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// AsOfNow is a moment as both clocks have it now: as far from now as before, by the monotonic clock where it has a reading
// of that, else by the wall clock, which may jump from here on. The zero time stays zero.
func AsOfNow(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	now := time.Now()
	return now.Add(t.Sub(now))
}

// Limits of one request. They are checked before anything of the announced size is allocated.
const (
	// MaxRequestBytes bounds the vanilla proofs of one request together. A 32 GiB C1 is about 50 MB, a 64 GiB window
	// partition some 150 MB.
	MaxRequestBytes = 1 << 30
	// MaxPoStProofBytes and MaxUpdateProofBytes bound one vanilla proof. The longest, of 64 GiB sectors, have 200 kB
	// (winning PoSt) and 600 kB (update).
	MaxPoStProofBytes   = 1 << 20
	MaxUpdateProofBytes = 4 << 20
	// MaxVanillaProofs bounds how many vanilla proofs one request has. A full window partition has 2,349.
	MaxVanillaProofs = 1 << 16
	// MaxProofBytes bounds a proof that is to be verified. The longest, non-interactive PoRep's of 126 partitions, has
	// 24,192 bytes.
	MaxProofBytes = 1 << 20
	// MaxRequestIDBytes bounds the caller's name of a request.
	MaxRequestIDBytes = 256
)

// Kind is what a request proves.
type Kind uint8

// The kinds of proof. The zero value is none of them.
const (
	KindPoRep       Kind = iota + 1 // proof of replication, the second phase of a seal's commit (C2)
	KindWinningPoSt                 // winning proof of spacetime
	KindWindowPoSt                  // window proof of spacetime
	KindUpdate                      // empty-sector update (SnapDeals)
)

var kindNames = [...]string{KindPoRep: "porep", KindWinningPoSt: "winning-post", KindWindowPoSt: "window-post", KindUpdate: "update"}

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{KindPoRep, KindWinningPoSt, KindWindowPoSt, KindUpdate} }

// MaxVanillaBytes bounds one vanilla proof of a kind.
func MaxVanillaBytes(k Kind) int64 {
	switch {
	case k.IsPoSt():
		return MaxPoStProofBytes
	case k == KindUpdate:
		return MaxUpdateProofBytes
	}
	return MaxRequestBytes
}

// String gives the name that commands use, such as "winning-post".
func (k Kind) String() string {
	if k.Valid() {
		return kindNames[k]
	}
	return fmt.Sprintf("kind-%d", uint8(k))
}

// Valid tells whether k is one of the kinds.
func (k Kind) Valid() bool { return k >= KindPoRep && k <= KindUpdate }

// IsPoSt tells whether k is a proof of spacetime.
func (k Kind) IsPoSt() bool { return k == KindWinningPoSt || k == KindWindowPoSt }

// ParseKind is the inverse of [Kind.String].
func ParseKind(name string) (Kind, error) {
	for _, k := range Kinds() {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("unknown kind of proof %q; there are %s", name, strings.Join(kindNames[1:], ", "))
}

// SectorSize is a sector's size in bytes.
type SectorSize uint64

// The sector sizes that circuits exist for. The originals name those of 2 KiB, 8 MiB, 512 MiB, 32 GiB and 64 GiB in
// their API; the others follow the same pattern and serve tests.
const (
	SectorSize2KiB   SectorSize = 2 << 10
	SectorSize4KiB   SectorSize = 4 << 10
	SectorSize16KiB  SectorSize = 16 << 10
	SectorSize32KiB  SectorSize = 32 << 10
	SectorSize8MiB   SectorSize = 8 << 20
	SectorSize512MiB SectorSize = 512 << 20
	SectorSize32GiB  SectorSize = 32 << 30
	SectorSize64GiB  SectorSize = 64 << 30
)

// SectorSizes lists all sizes, ascending.
func SectorSizes() []SectorSize {
	return []SectorSize{
		SectorSize2KiB, SectorSize4KiB, SectorSize16KiB, SectorSize32KiB,
		SectorSize8MiB, SectorSize512MiB, SectorSize32GiB, SectorSize64GiB,
	}
}

// String gives the size as commands write it, such as "32GiB"; in bytes if it is not a whole number of KiB.
func (s SectorSize) String() string {
	switch {
	case s == 0 || s%(1<<10) != 0:
		return fmt.Sprintf("%dB", uint64(s))
	case s%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", uint64(s>>30))
	case s%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", uint64(s>>20))
	default:
		return fmt.Sprintf("%dKiB", uint64(s>>10))
	}
}

// Validate refuses a size that no circuit exists for.
func (s SectorSize) Validate() error {
	for _, known := range SectorSizes() {
		if s == known {
			return nil
		}
	}
	return fmt.Errorf("unknown sector size %s; there are %s", s, joinSizes())
}

// ParseSectorSize is the inverse of [SectorSize.String] for the known sizes.
func ParseSectorSize(text string) (SectorSize, error) {
	for _, s := range SectorSizes() {
		if s.String() == text {
			return s, nil
		}
	}
	return 0, fmt.Errorf("unknown sector size %q; there are %s", text, joinSizes())
}

func joinSizes() string {
	var names []string
	for _, s := range SectorSizes() {
		names = append(names, s.String())
	}
	return strings.Join(names, ", ")
}

// Priority decides which partition goes next; inside one priority, first come is first served.
type Priority uint8

// The priorities. A request that names none has PriorityNormal, see [Priority.OrNormal].
const (
	PriorityUnspecified Priority = iota
	PriorityLow
	PriorityNormal
	PriorityHigh
	PriorityCritical
)

var priorityNames = [...]string{"unspecified", "low", "normal", "high", "critical"}

// String gives the priority's name, such as "high".
func (p Priority) String() string {
	if p.Valid() {
		return priorityNames[p]
	}
	return fmt.Sprintf("priority-%d", uint8(p))
}

// Valid tells whether p is one of the priorities or unspecified.
func (p Priority) Valid() bool { return p <= PriorityCritical }

// OrNormal gives p, or PriorityNormal where the request named none.
func (p Priority) OrNormal() Priority {
	if p == PriorityUnspecified {
		return PriorityNormal
	}
	return p
}

// ParsePriority reads "low", "normal", "high" or "critical".
func ParsePriority(name string) (Priority, error) {
	for p := PriorityLow; p <= PriorityCritical; p++ {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("unknown priority %q; there are %s", name, strings.Join(priorityNames[1:], ", "))
}

// The API versions of the proofs library that decide how challenges are made and indexed.
const (
	APIVersion100 = "1.0.0"
	APIVersion110 = "1.1.0"
	APIVersion120 = "1.2.0"
)

// Request is one thing to prove.
type Request struct {
	// ID is the caller's name for the request, used in logs and timelines; the prover makes one if it is empty.
	ID       string
	Kind     Kind
	Priority Priority
	// SectorSize may be left out for PoRep alone, whose phase-1 output says it too.
	SectorSize SectorSize

	// Vanilla holds the vanilla proofs. PoRep: one phase-1 output (C1), JSON. PoSt: one bincode sector proof each.
	// Update: one bincode partition proof each.
	//
	// In a plugin they may lie in the host's memory: only as long as the request, or a copy of it, is in use, and until
	// [Request.Release].
	Vanilla [][]byte
	mapped  *mapping // that Vanilla lies in; nil: none

	MinerID      uint64  // for PoRep 0 means that the caller does not know it
	SectorNumber *uint64 // nil if the caller does not know it
	// RegisteredProof is, for PoRep, the number of the sector's seal proof as the chain counts them; the phase-1 output
	// must be of that one. nil if the caller does not know it.
	RegisteredProof *uint64

	// Randomness has 32 bytes for PoSt and is empty for other kinds.
	Randomness []byte
	// APIVersion is one of "1.0.0", "1.1.0", "1.2.0" for PoSt; empty is the kind's default, see [Request.Version].
	APIVersion string
	// Partition says, for window PoSt, that the vanilla proofs are those of this partition alone.
	Partition *uint32

	// The commitments of an update, 32 bytes each; empty for other kinds.
	CommROld, CommRNew, CommDNew []byte

	// Deadline is when the answer stops being of use; the request is then given up with [context.DeadlineExceeded].
	// The zero time is no deadline.
	Deadline time.Time
}

// Version is the API version that the request asks for: its own, else 1.2.0 for window PoSt and 1.0.0 for winning PoSt.
// It is empty for kinds that have none.
func (r *Request) Version() string {
	switch {
	case r.APIVersion != "":
		return r.APIVersion
	case r.Kind == KindWindowPoSt:
		return APIVersion120
	case r.Kind == KindWinningPoSt:
		return APIVersion100
	}
	return ""
}

// Validate checks everything that can be told without decoding the vanilla proofs. The error holds one
// [*InvalidRequestError] for each fault.
func (r *Request) Validate() error {
	var faults Faults
	r.validate(r.vanillaBytes(), &faults)
	return faults.Err()
}

func (r *Request) vanillaBytes() []uint64 {
	sizes := make([]uint64, len(r.Vanilla))
	for i, v := range r.Vanilla {
		sizes[i] = uint64(len(v))
	}
	return sizes
}

// validate checks the request as if its vanilla proofs had the given sizes, so that the receiving side can do it before
// they arrive.
func (r *Request) validate(vanillaBytes []uint64, faults *Faults) {
	if reason := idFault(r.ID); reason != "" {
		faults.Add("id", "%s", reason)
	}
	if !r.Kind.Valid() {
		faults.Add("kind", "unknown kind of proof %d", uint8(r.Kind))
	}
	if err := r.SectorSize.Validate(); err != nil && (r.SectorSize != 0 || r.Kind != KindPoRep) {
		faults.Add("sector_size", "%v", err)
	}
	if !r.Priority.Valid() {
		faults.Add("priority", "unknown priority %d", uint8(r.Priority))
	}
	r.validateVanilla(vanillaBytes, faults)
	if r.Kind.Valid() {
		r.validateByKind(faults)
	}
}

func (r *Request) validateVanilla(vanillaBytes []uint64, faults *Faults) {
	if len(vanillaBytes) == 0 {
		faults.Add("vanilla", "no vanilla proof given")
	}
	if len(vanillaBytes) > MaxVanillaProofs {
		faults.Add("vanilla", "%d vanilla proofs are more than the %d a request may have", len(vanillaBytes), MaxVanillaProofs)
	}
	if (r.Kind == KindPoRep || r.Kind == KindWinningPoSt) && len(vanillaBytes) > 1 {
		faults.Add("vanilla", "%s takes one vanilla proof, not %d", r.Kind, len(vanillaBytes))
	}
	total := uint64(0)
	for i, n := range vanillaBytes {
		if n == 0 {
			faults.Add(fmt.Sprintf("vanilla[%d]", i), "is empty")
		}
		// Each is compared before it is added, so that the sum cannot wrap around.
		if n > MaxRequestBytes || total+n > MaxRequestBytes {
			faults.Add("vanilla", "the vanilla proofs are larger than the %d bytes a request may have", uint64(MaxRequestBytes))
			return
		}
		if limit := uint64(MaxVanillaBytes(r.Kind)); n > limit {
			faults.Add(fmt.Sprintf("vanilla[%d]", i), "has %d bytes, more than the %d that one of %s may have", n, limit, r.Kind)
		}
		total += n
	}
}

func (r *Request) validateByKind(faults *Faults) {
	if r.Kind.IsPoSt() {
		if len(r.Randomness) != 32 {
			faults.Add("randomness", "has %d bytes, not 32", len(r.Randomness))
		}
		switch r.APIVersion {
		case "", APIVersion100, APIVersion110, APIVersion120:
		default:
			faults.Add("api_version", "unknown version %q; there are 1.0.0, 1.1.0, 1.2.0", r.APIVersion)
		}
	} else {
		if len(r.Randomness) != 0 {
			faults.Add("randomness", "is not used by %s", r.Kind)
		}
		if r.APIVersion != "" {
			faults.Add("api_version", "is not used by %s", r.Kind)
		}
	}
	if r.RegisteredProof != nil && r.Kind != KindPoRep {
		faults.Add("registered_proof", "is not used by %s", r.Kind)
	}
	if r.Partition != nil && r.Kind != KindWindowPoSt {
		faults.Add("partition", "is not used by %s", r.Kind)
	}
	for _, comm := range []struct {
		field string
		value []byte
	}{{"comm_r_old", r.CommROld}, {"comm_r_new", r.CommRNew}, {"comm_d_new", r.CommDNew}} {
		switch {
		case r.Kind == KindUpdate && len(comm.value) != 32:
			faults.Add(comm.field, "has %d bytes, not 32", len(comm.value))
		case r.Kind != KindUpdate && len(comm.value) != 0:
			faults.Add(comm.field, "is not used by %s", r.Kind)
		}
	}
}

// idFault keeps request ids fit for one field of a text line, as logs and timelines write them.
func idFault(id string) string {
	if len(id) > MaxRequestIDBytes {
		return fmt.Sprintf("has %d bytes, more than %d", len(id), MaxRequestIDBytes)
	}
	for _, c := range id {
		if c == ',' || c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return fmt.Sprintf("has the character %q; a request id is printable and has no comma", c)
		}
	}
	return ""
}

// JobID names a submitted request until its result has been fetched.
type JobID string

// Stage is where a request is on its way.
type Stage string

// The stages, in the order a request goes through them. Partitions are in different stages at once, from params to
// finish.
const (
	StageQueued  Stage = "queued"  // waits for its turn
	StageDecode  Stage = "decode"  // the vanilla proofs are decoded and checked
	StageParams  Stage = "params"  // circuit and parameters are loaded
	StageWitness Stage = "witness" // a partition's witness is computed
	StagePrepare Stage = "prepare" // a partition is brought to its device
	StageDevice  Stage = "device"  // a partition's kernels run
	StageFinish  Stage = "finish"  // a partition's proof is put together
	StageVerify  Stage = "verify"  // the whole proof is verified
	StageDone    Stage = "done"
)

// Progress tells how far a request, or another long task, is.
type Progress struct {
	RequestID      string
	Stage          Stage
	Partition      int // the partition that changed its stage; -1 if it is about the whole request
	PartitionsDone int
	Partitions     int           // 0 until it is known
	Elapsed        time.Duration // since the request was accepted
	Message        string        // for people; may be empty
}

// Timings says where the time of a request went. Phases of different partitions overlap, so the sum of the phases may
// exceed Total.
type Timings struct {
	Queue   time.Duration // from acceptance to the first work on it
	Params  time.Duration // waiting for circuit and parameters
	Witness time.Duration // the phases of all partitions added up, from here
	Prepare time.Duration
	Device  time.Duration
	Finish  time.Duration // to here
	Verify  time.Duration // the self-check
	Total   time.Duration // from acceptance to the answer
}

// Result is a proof that has been verified.
type Result struct {
	RequestID  string
	Proof      []byte // 192 bytes for each partition, in order
	Partitions int
	Timings    Timings
	// InsecureParams says that the proof was made with development parameters, which anyone can forge proofs for.
	InsecureParams bool
	// Margin is how long before the request's deadline the answer was ready; 0 if it has none.
	Margin time.Duration
}

// Status is what a prover is doing.
type Status struct {
	Version   string // of the plugin
	PID       int    // of the plugin process
	Uptime    time.Duration
	Completed uint64 // requests answered with a proof since the start
	Failed    uint64 // requests answered with an error since the start, cancelled ones not counted
	Withheld  uint64 // proofs since the start that did not verify and were made again or given up
	Retries   uint64 // partitions since the start that were tried again because a device failed
	Fallbacks uint64 // partitions since the start that the CPU proved because no card could

	// Memory of the host, as the plugin budgets it.
	MemoryBudgetBytes uint64
	MemoryUsedBytes   uint64

	Devices []DeviceStatus
	Params  []ParamsStatus
	Queues  []QueueStatus // one for each kind that has been asked for
	Jobs    []JobStatus   // not finished yet, oldest first
}

// DeviceStatus is the state of one device.
type DeviceStatus struct {
	Name               string // as the configuration labels it
	Model              string
	UUID               string // of the card, as nvidia-smi writes it; empty for a device without one
	Workers            int
	MemoryTotalBytes   uint64
	MemoryFreeBytes    uint64
	RequestID          string // of the partition in its device phase; empty if idle
	Kind               Kind   // of that request; 0 if idle
	Partition          int    // -1 if idle
	OutOfUse           string // why the device was taken out of use; empty if it is in use
	Faults             uint64 // times since the start that the device failed
	TemperatureCelsius int    // of the card's processor; 0 if it is not known
}

// ParamsStatus is the state of one parameter set.
type ParamsStatus struct {
	Kind       Kind
	SectorSize SectorSize
	Bytes      uint64
	Users      int    // requests that hold it
	Where      string // "device", "memory" or "disk"
	Insecure   bool   // development parameters
}

// QueueStatus counts the partitions of one kind.
type QueueStatus struct {
	Kind       Kind
	Pending    int
	InProgress int
}

// JobStatus is the state of one request.
type JobStatus struct {
	ID             JobID
	RequestID      string
	Kind           Kind
	SectorSize     SectorSize
	Priority       Priority
	Stage          Stage
	PartitionsDone int
	Partitions     int
	Elapsed        time.Duration
	Deadline       time.Time // zero: none
}
