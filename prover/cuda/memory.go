package cuda

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/witness"
)

const (
	// outsideBytes is left free on a card beside the limit: the CUDA context and
	// the kernels' code, which the library's pool does not count.
	outsideBytes = 768 << 20
	// tableBytes is for what the library keeps in its pool for itself: the roots
	// of unity of the transforms, at most 256 MB, and points that are being
	// copied, a pinned buffer for each copy.
	tableBytes = 512 << 20
	// phaseBytesMax is what device phases get on a card with room for it. More
	// gains them little (a multi-exponentiation over 2^26 points takes 7 GB at
	// least) and is missing for keys.
	phaseBytesMax = 18e9

	// maxLogDomain is the library's largest transform.
	maxLogDomain = 27
	// minLogDomain is the smallest that is worth a card.
	minLogDomain = 12

	// A segment has at most so many points of G1, half as many of G2: a sum
	// over more would run for longer than 400 ms, in which nothing can stop it.
	maxSegment = 1 << 26
	// maxStreamed is the same of the segments of a streamed key, of which two are
	// on the card at a time. Copying one takes 30 ms.
	maxStreamed = 1 << 24

	// maxPinnedBytes copy in less than a millisecond: long beside what a call
	// costs, short beside the copy of a key.
	maxPinnedBytes = 32 << 20

	// A multi-exponentiation in G1 that has less than scratchPerScalar for each
	// scalar, in G2 twice that, takes longer (interlock_device_open).
	scratchPerScalar = 100
	// leastScratchBytes is INTERLOCK_LEAST_SCRATCH_BYTES.
	leastScratchBytes = 64 << 20

	// gatheredBytes is more than what the library gathers for each point of a
	// segment before it sums: a bit or a scalar, and the point's index.
	gatheredBytes = fr.Bytes + 4 + 1

	// keyMultiples of each point of a small key are kept, which makes sums a few
	// percent faster; a key is small if its points take no more than
	// smallKeyBytes.
	keyMultiples  = 4
	smallKeyBytes = 1e9

	// leastSegment is the fewest points of a segment that are worth a call.
	leastSegment = 128
	// lateCopies is how often a late witness is copied: for A and B, for C, and
	// for the sums.
	lateCopies = 3
)

// plan is how the memory of a card is used. Of limitBytes, the hard limit of
// the library's pool, phaseBytes are for the device phase, one at a time, and
// the rest, the budget, for keys and witnesses. A device phase takes
//
//	3 domains                                              while it computes the quotient
//	1 domain + scratch + 2 streamed segments               for the sum over the quotient
//	scratch + gatheredBytes a point + 2 streamed segments  for each other sum
//
// where what is gathered is no more than the domain, which is free again by then.
//
// A witness that the budget has no room for comes late: it is in the device phase
// while that needs it, which takes then
//
//	2 domains + witness                                              while it evaluates A, B and C
//	3 domains                                                        while it transforms them
//	1 domain + scratch + 2 streamed segments                         for the sum over the quotient
//	witness + scratch + gatheredBytes a point + 2 streamed segments  for each other sum
//
// in segments that are small enough for that.
type plan struct {
	limitBytes   int64
	phaseBytes   int64
	scratchBytes int64
	logDomain    int // of the largest circuit that has room
	segment      int // points of G1 in a segment of a resident key
	streamed     int // and of a streamed key
	pinnedBytes  int // of page-locked host memory in each of the buffers that keys are copied through
}

func domainBytes(logDomain int) int64 { return fr.Bytes << logDomain }

// streamBytes is what two segments of a streamed key take, of so many points of G1.
func streamBytes(segment int) int64 { return 2 * int64(segment) * int64(groupG1.pointBytes()) }

// newPlan divides limitBytes.
func newPlan(limitBytes int64) (plan, error) {
	// 10 % for witnesses and circuits at least: so a domain of 2^27 has room on a
	// card of 16 GB.
	p := plan{limitBytes: limitBytes, phaseBytes: min(limitBytes/10*9, phaseBytesMax), pinnedBytes: maxPinnedBytes}
	for p.logDomain = maxLogDomain; ; p.logDomain-- {
		if p.logDomain < minLogDomain {
			return plan{}, fmt.Errorf("%d bytes of device memory are too few: raise memory_limit or free some", limitBytes)
		}
		domain := domainBytes(p.logDomain)
		p.streamed = min(maxStreamed, 1<<p.logDomain/8)
		p.scratchBytes = p.phaseBytes - tableBytes - domain - streamBytes(p.streamed)
		if 3*domain+tableBytes <= p.phaseBytes && p.scratchBytes >= leastScratchBytes {
			break
		}
	}
	p.segment = maxSegment
	// Beside the scratch, what is gathered of a segment takes the domain's place.
	for int64(p.segment)*scratchPerScalar > p.scratchBytes || int64(p.segment)*gatheredBytes > domainBytes(p.logDomain) {
		p.segment /= 2
	}
	p.streamed = min(p.streamed, p.segment)
	return p, nil
}

func (p *plan) budgetBytes() int64 { return p.limitBytes - p.phaseBytes }

// sizes are what the parts of a proof take, in bytes.
type sizes struct {
	domain, points, circuit, witness int64
}

func sizesOf(c *groth16.Circuit) sizes {
	s := sizes{domain: fr.Bytes * int64(c.Domain), circuit: circuitBytes(c.System.Flat()), witness: witnessBytes(c.System.Layout())}
	for q := range groth16.Query(groth16.NumQueries) {
		s.points += int64(c.QueryLen(q)) * int64(q.PointBytes())
	}
	return s
}

// check returns an *Error if a circuit is too large for the card.
func (p *plan) check(c *groth16.Circuit) error { return p.checkSizes(sizesOf(c)) }

func (p *plan) checkSizes(s sizes) error {
	if s.domain <= domainBytes(p.logDomain) {
		return p.checkPlace(s)
	}
	need, remedy := 3*s.domain+tableBytes, moreMemory
	if s.domain > domainBytes(maxLogDomain) {
		remedy = fmt.Sprintf("cards prove with domains of up to 2^%d, the CPU with larger ones", maxLogDomain)
	}
	return &Error{
		Kind: OutOfMemory, BytesAsked: need, BytesFree: p.phaseBytes,
		Message: fmt.Sprintf("a domain of %d elements takes three times %d bytes and %d for tables; of the limit of %d the device phase has %d: %s",
			s.domain/fr.Bytes, s.domain, tableBytes, p.limitBytes, p.phaseBytes, remedy),
	}
}

const moreMemory = "raise memory_limit, or use a card with more memory"

// checkPlace returns an *Error if there is no place for a circuit and its witness.
func (p *plan) checkPlace(s sizes) error {
	if _, ok := p.place(s); ok {
		return nil
	}
	e := &Error{Kind: OutOfMemory, BytesAsked: s.circuit + s.witness, BytesFree: p.budgetBytes()}
	e.Message = fmt.Sprintf("a circuit of %d bytes and its witness of %d do not fit the %d that the limit of %d leaves beside the device phase",
		s.circuit, s.witness, e.BytesFree, p.limitBytes)
	if s.circuit > e.BytesFree {
		e.Message += ", nor does the circuit alone: " + moreMemory
		return e
	}
	e.Message += fmt.Sprintf("; in that, which has %d, the witness would make it %d with two domains of %d and %d for tables, and at least %d with %d of scratch memory and those tables: %s",
		p.phaseBytes, s.witness+2*s.domain+tableBytes, s.domain, tableBytes, s.witness+p.scratchBytes+streamBytes(leastSegment)+tableBytes, p.scratchBytes, moreMemory)
	return e
}

// placement is how a key is kept: on the card, with so many multiples of each
// point, or streamed; and when witnesses come to the card.
type placement struct {
	resident  bool
	late      bool // witnesses come in the device phase, as often as that needs them
	multiples int
	segment   int   // points of G1 in a segment, half as many of G2
	keyBytes  int64 // resident: points and circuit
	workBytes int64 // of each proof: the witness, unless it is late, and, if streamed, its share of the circuit, all of it
}

// place decides where the key of a circuit goes: to the card if that has room for
// it and a witness. It tells whether there is a place at all.
func (p *plan) place(s sizes) (placement, bool) {
	budget := p.budgetBytes()
	for _, multiples := range [...]int{keyMultiples, 1} {
		if multiples > 1 && s.points > smallKeyBytes {
			continue
		}
		if key := int64(multiples)*s.points + s.circuit; key+s.witness <= budget {
			return placement{resident: true, multiples: multiples, segment: p.segment, keyBytes: key, workBytes: s.witness}, true
		}
	}
	if work := s.witness + s.circuit; work <= budget {
		return placement{multiples: 1, segment: p.streamed, workBytes: work}, true
	}
	segment := p.lateSegment(s)
	return placement{late: true, multiples: 1, segment: segment, workBytes: s.circuit}, segment > 0 && s.circuit <= budget
}

// lateSegment is how many points of G1 a segment may have if witnesses come late;
// 0 if they have no room in the device phase.
func (p *plan) lateSegment(s sizes) int {
	free := p.phaseBytes - tableBytes
	if 2*s.domain+max(s.domain, s.witness) > free {
		return 0
	}
	free -= p.scratchBytes
	for segment := p.streamed; segment >= leastSegment; segment /= 2 {
		if streamBytes(segment)+max(s.domain, s.witness+int64(segment)*gatheredBytes) <= free {
			return segment
		}
	}
	return 0
}

// witnessBytes is what a witness takes on the card, each part rounded up to what
// the pool hands out.
func witnessBytes(l *witness.Layout) int64 { return l.Bytes() + 3*poolGrain }

// poolGrain is more than what an allocation is rounded up by.
const poolGrain = 4 << 10

// circuitBytes is what a circuit takes on the card: its tables and four bitmaps,
// with the number of ones before each word.
func circuitBytes(f *constraint.Flat) int64 {
	tables := 24*len(f.Templates) + 16*len(f.Instances) + 4*(len(f.Ports)+len(f.RowPlaces)+len(f.RowEnds)) +
		8*len(f.Terms) + fr.Bytes*len(f.Coefficients)
	words := len(f.IsBit) + len(f.DenseA) + len(f.DenseB) + len(f.DenseBInputs)
	return int64(tables) + int64(words)*(8+4) + 16*poolGrain
}

// segment is a part of a query that is on the card as a whole.
type segment struct {
	query groth16.Query
	from  int // its first point
	count int
}

// segments cuts the queries of a circuit, in order, into parts of at most so
// many points of G1, half as many of G2.
func segments(c *groth16.Circuit, points int) []segment {
	var out []segment
	for q := range groth16.Query(groth16.NumQueries) {
		most := points
		if groupOf(q) == groupG2 {
			most /= 2
		}
		for from, n := 0, c.QueryLen(q); from < n; from += most {
			out = append(out, segment{q, from, min(most, n-from)})
		}
	}
	return out
}
