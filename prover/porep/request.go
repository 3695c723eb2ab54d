package porep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/bincode"
	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/prover/poseidon"
)

// Request asks for a proof of replication.
type Request struct {
	Phase1       []byte  // the first phase's output, as JSON, plain or wrapped
	SectorSize   uint64  // bytes; 0: what the output says
	MinerID      *uint64 // if known; with the sector number, the replica id is checked
	SectorNumber *uint64 // if known; the wrapped form has one too

	RegisteredProof *uint64 // if known; the output must be of that one
}

// Statement is a request whose form, fields, challenges and graph are right. Check does
// the rest.
type Statement struct {
	Params       Params
	Variant      Variant
	Note         string  // who made the phase-1 output and why, if it says so
	SectorNumber *uint64 // if the request or the wrapped form has one
	ReplicaID    fr.Element
	CommD        fr.Element // root of the tree over the data
	CommR        fr.Element // H(CommC, CommRLast), on the chain
	CommC        fr.Element // root of the tree over the columns of labels
	CommRLast    fr.Element // root of the tree over the replica
	Seed, Ticket [32]byte
	Partitions   []Partition
}

// Partition is the instance of the circuit that one Groth16 proof is about.
type Partition struct {
	Index      int               // among the partitions of the whole proof
	Challenges []*ChallengeProof // Params.Challenges
}

// Decode reads a request and checks all of it that needs no tree's hashes and no labels:
// form, sizes, field elements, the number of partitions and challenges, whether the nodes
// are those that the variant derives from seed and replica, and whether the parents are the
// graph's. What is wrong is a *FieldError; when ctx is done it returns at once.
func Decode(ctx context.Context, req *Request) (*Statement, error) {
	out, err := readPhase1(&contextReader{ctx, bytes.NewReader(req.Phase1)})
	if err != nil {
		return nil, err
	}
	s := &Statement{
		ReplicaID: out.replicaID, CommD: out.commD, CommR: out.commR,
		Seed: out.seed, Ticket: out.ticket, Note: out.note, SectorNumber: req.SectorNumber,
	}
	if err := s.setParams(req, out); err != nil {
		return nil, err
	}
	if err := s.setRoots(); err != nil {
		return nil, err
	}
	if err := s.checkReplicaID(req, out); err != nil {
		return nil, err
	}
	if err := s.checkNodes(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// contextReader is a stream that ends with an error when ctx is done.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// setParams sets the parameters, the variant and the partitions.
func (s *Statement) setParams(req *Request, out *phase1) error {
	size, variant, ok := parseRegisteredProof(out.registeredProof)
	switch {
	case !ok:
		return fault("registered_proof", "is %q, which is not known", out.registeredProof)
	case size != out.sectorSize:
		return fault("registered_proof", "is %s, but the vanilla proofs are of %s", out.registeredProof, shapeOf(out.sectorSize))
	case out.wrapped && out.sizeGiven != size:
		return fault("SectorSize", "is %d, but the sector is %d bytes", out.sizeGiven, size)
	case req.SectorSize != 0 && req.SectorSize != size:
		return fault("sector_size", "is %d, but the phase-1 output is of a sector of %d bytes", req.SectorSize, size)
	case req.RegisteredProof != nil && *req.RegisteredProof != registeredNumber(size, variant):
		return fault("registered_proof", "is %s, which is number %d, but the request is for number %d",
			out.registeredProof, registeredNumber(size, variant), *req.RegisteredProof)
	case s.CommD.IsZero():
		return fault("comm_d", "is zero")
	case s.CommR.IsZero():
		return fault("comm_r", "is zero")
	case s.Seed == [32]byte{}:
		return fault("seed", "is zero")
	case len(out.partitions) == 0:
		return fault("vanilla_proofs", "has no partitions")
	}
	form := form{len(out.partitions), len(out.partitions[0]), variant == NonInteractive}
	known := false
	for _, f := range forms(size) {
		known = known || f == form
	}
	if !known {
		return fault("vanilla_proofs", "has %d partitions, the first of %d challenges; no %s proof has that",
			form.partitions, form.challenges, out.registeredProof)
	}
	params, err := ParamsFor(size, form.partitions)
	if err != nil {
		return err
	}
	if out.layers != params.Layers && (isMainnet(size) || out.layers != mainnetLayers) {
		return fault("vanilla_proofs", "has columns of %d labels; sectors of %d bytes have %d layers", out.layers, size, params.Layers)
	}
	params.Layers = out.layers
	s.Params, s.Variant = params, variant
	for k, proofs := range out.partitions {
		if len(proofs) != params.Challenges {
			return fault(fmt.Sprintf("vanilla_proofs.%s[%d]", shapeOf(size), k), "has %d challenges, not %d", len(proofs), params.Challenges)
		}
		s.Partitions = append(s.Partitions, Partition{k, proofs})
	}
	return nil
}

// setRoots finds the roots of the trees, which must be the same throughout.
func (s *Statement) setRoots() error {
	first := s.Partitions[0].Challenges[0]
	s.CommC, s.CommRLast = first.Column.Inclusion.Root, first.Replica.Root
	for k := range s.Partitions {
		for i, c := range s.Partitions[k].Challenges {
			field := s.challengeField(k, i)
			if c.Data.Root != s.CommD {
				return fault(field+".comm_d_proofs", "root is not comm_d")
			}
			if c.Replica.Root != s.CommRLast {
				return fault(field+".comm_r_last_proof", "root is not that of the first challenge")
			}
			for j, column := range c.columns() {
				if column.Inclusion.Root != s.CommC {
					return fault(field+"."+columnField(j)+".inclusion_proof", "root is not that of the first challenge")
				}
			}
		}
	}
	return nil
}

// columns are the parents' columns in order, and last the challenged one.
func (c *ChallengeProof) columns() []*Column {
	columns := make([]*Column, 0, degree+1)
	for i := range c.Parents {
		columns = append(columns, &c.Parents[i])
	}
	return append(columns, &c.Column)
}

// checkReplicaID checks the replica id if miner and sector are known.
func (s *Statement) checkReplicaID(req *Request, out *phase1) error {
	if out.wrapped {
		if n := req.SectorNumber; n != nil && *n != out.sectorNumber {
			return fault("SectorNum", "is %d, not %d", out.sectorNumber, *n)
		}
		s.SectorNumber = &out.sectorNumber
	}
	if req.MinerID == nil || s.SectorNumber == nil {
		return nil
	}
	if s.replicaID(*req.MinerID, *s.SectorNumber) != s.ReplicaID {
		return fault("replica_id", "is not that of miner %d, sector %d, the ticket and comm_d", *req.MinerID, *s.SectorNumber)
	}
	return nil
}

// replicaID computes the replica id (generate_replica_id in storage-proofs-porep,
// params.rs).
func (s *Statement) replicaID(miner, sector uint64) fr.Element {
	prover, commD, id := proverID(miner), littleEndian(&s.CommD), porepID(s.Params.SectorSize, s.Variant)
	return gadget.HashElement(sha256.Sum256(concat(
		prover[:], binary.BigEndian.AppendUint64(nil, sector), s.Ticket[:], commD[:], id[:])))
}

// proverID is the miner id as unsigned LEB128, padded with zeros.
func proverID(miner uint64) (id [32]byte) {
	binary.PutUvarint(id[:], miner)
	return id
}

// checkNodes checks that the challenged nodes and their parents are the right ones.
func (s *Statement) checkNodes(ctx context.Context) error {
	source, graph := s.challengeSource(), s.graph()
	return s.each(ctx, func(k, i int, c *ChallengeProof) error {
		want := source.challenge(k*s.Params.Challenges + i)
		if c.Node() != want {
			return fault("replica_column_proofs.c_x", "is of node %d, but seed and replica demand node %d", c.Node(), want)
		}
		for j, parent := range graph.parents(want) {
			if at := c.Parents[j].Inclusion.Position(); at != parent {
				return fault(columnField(j), "is of node %d, but the parent of node %d is %d", at, want, parent)
			}
		}
		return nil
	})
}

func (s *Statement) challengeSource() *challengeSource {
	return &challengeSource{
		variant: s.Variant, nodes: s.Params.Nodes(),
		replicaID: littleEndian(&s.ReplicaID), commR: littleEndian(&s.CommR), seed: s.Seed,
	}
}

func (s *Statement) graph() *graph {
	return newGraph(s.Params.Nodes(), porepID(s.Params.SectorSize, s.Variant), s.Variant == V1)
}

// Check computes all hashes of a statement on all cores: labels, encoding, columns, paths,
// and comm_r. What is wrong is a *FieldError; after that, or when ctx is done, it returns
// as soon as the challenges in hand are finished.
func (s *Statement) Check(ctx context.Context) error {
	if poseidon.Hash([]fr.Element{s.CommC, s.CommRLast}) != s.CommR {
		return fault("comm_r", "is not the hash of comm_c and comm_r_last, the roots of %s", s.challengeField(0, 0))
	}
	return s.each(ctx, func(_, _ int, c *ChallengeProof) error { return s.checkHashes(c) })
}

// checkHashes checks the proof of one challenge.
func (s *Statement) checkHashes(c *ChallengeProof) error {
	for layer := range c.Column.Rows {
		if s.label(c.Node(), c, layer) != c.Column.Rows[layer] {
			return fault(fmt.Sprintf("replica_column_proofs.c_x.column.rows[%d]", layer),
				"is not the label that replica id, node and parents give")
		}
	}
	encoded := c.Data.Leaf
	if encoded.Add(&encoded, &c.Column.Rows[len(c.Column.Rows)-1]); encoded != c.Replica.Leaf {
		return fault("comm_r_last_proof", "leaf is not the data's leaf plus the last label")
	}
	if c.Data.ComputeRoot(gadget.HashPair) != s.CommD {
		return fault("comm_d_proofs", "path does not lead to comm_d")
	}
	if c.Replica.ComputeRoot(poseidon.Hash) != s.CommRLast {
		return fault("comm_r_last_proof", "path does not lead to comm_r_last")
	}
	for j, column := range c.columns() {
		if poseidon.Hash(column.Rows) != column.Inclusion.Leaf {
			return fault(columnField(j)+".inclusion_proof", "leaf is not the column's hash")
		}
		if column.Inclusion.ComputeRoot(poseidon.Hash) != s.CommC {
			return fault(columnField(j)+".inclusion_proof", "path does not lead to comm_c")
		}
	}
	return nil
}

// label computes the label of a challenged node in a layer, which counts from 0
// (create_label in storage-proofs-porep, labeling_proof.rs).
func (s *Statement) label(node uint64, c *ChallengeProof, layer int) fr.Element {
	var message [(2 + labelParents) * merkle.NodeBytes]byte
	replicaID := littleEndian(&s.ReplicaID)
	copy(message[:], replicaID[:])
	binary.BigEndian.PutUint32(message[32:], uint32(layer+1))
	binary.BigEndian.PutUint64(message[36:], node)
	distinct := degree
	if layer == 0 {
		distinct = baseDegree
	}
	parents := message[2*merkle.NodeBytes:]
	for i := range labelParents {
		at := parents[i*merkle.NodeBytes:]
		if i < distinct {
			raw := littleEndian(c.labelParent(layer, i))
			copy(at, raw[:])
		} else {
			copy(at[:merkle.NodeBytes], parents[(i-distinct)*merkle.NodeBytes:])
		}
	}
	return gadget.HashElement(sha256.Sum256(message[:]))
}

func littleEndian(x *fr.Element) (raw [fr.Bytes]byte) {
	fr.LittleEndian.PutElement(&raw, *x)
	return raw
}

// each runs check for all challenges on all cores (constraint.Lowest), and names the
// challenge in which a fault is.
func (s *Statement) each(ctx context.Context, check func(k, i int, c *ChallengeProof) error) error {
	n := s.Params.Challenges
	return constraint.Lowest(ctx, n*len(s.Partitions), func(at int) error {
		k, i := at/n, at%n
		return bincode.In(s.challengeField(k, i), check(k, i, s.Partitions[k].Challenges[i]))
	})
}

// challengeField names the proof of a challenge in a phase-1 output.
func (s *Statement) challengeField(partition, challenge int) string {
	return fmt.Sprintf("vanilla_proofs.%s[%d][%d]", shapeOf(s.Params.SectorSize), partition, challenge)
}

// columnField names column j of a challenge.
func columnField(j int) string {
	switch {
	case j < baseDegree:
		return fmt.Sprintf("replica_column_proofs.drg_parents[%d]", j)
	case j < degree:
		return fmt.Sprintf("replica_column_proofs.exp_parents[%d]", j-baseDegree)
	default:
		return "replica_column_proofs.c_x"
	}
}
