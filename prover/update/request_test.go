package update

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

func namesField(err error) bool {
	var fault *FieldError
	return errors.As(err, &fault) && fault.Field != "" && fault.Reason != ""
}

// A request that is wrong is refused by the field that is.
func TestRefused(t *testing.T) {
	tooLarge := slices.Repeat([]byte{0xff}, 32)
	for _, test := range []struct {
		name, want string
		change     func(*Request)
	}{
		{"update-2KiB", "sector_size: no proofs exist for sectors of 8192 bytes", func(r *Request) { r.SectorSize = 8 << 10 }},
		{"update-2KiB", "comm_r_old: has 31 bytes, not 32", func(r *Request) { r.CommROld = r.CommROld[1:] }},
		{"update-2KiB", "comm_r_new: has 0 bytes, not 32", func(r *Request) { r.CommRNew = nil }},
		{"update-2KiB", "comm_d_new: is not below the field's modulus", func(r *Request) { r.CommDNew = tooLarge }},

		{"update-2KiB", "vanilla: has 0 vanilla proofs; the update of a sector of 2048 bytes has 1 partitions", func(r *Request) { r.Vanilla = nil }},
		{"update-16KiB", "vanilla: has 1 vanilla proofs; the update of a sector of 16384 bytes has 2 partitions", func(r *Request) { r.Vanilla = r.Vanilla[:1] }},
		{"update-16KiB", "vanilla: has 3 vanilla proofs; the update of a sector of 16384 bytes has 2 partitions", func(r *Request) {
			r.Vanilla = append(r.Vanilla, r.Vanilla[0])
		}},
		{"update-16KiB", "vanilla[0]: is the vanilla proof of partition 1; they must be in the partitions' order", func(r *Request) {
			slices.Reverse(r.Vanilla)
		}},
		{"update-32KiB", "vanilla[1]: is the vanilla proof of partition 0; they must be in the partitions' order", func(r *Request) {
			r.Vanilla[1] = r.Vanilla[0]
		}},

		{"update-2KiB", "comm_r_old: and comm_r_new are exchanged: each is the other's of vanilla[0]", func(r *Request) {
			r.CommROld, r.CommRNew = r.CommRNew, r.CommROld
		}},
		{"update-2KiB", "comm_r_old: is not the hash of comm_c and the root in proof_r_old of vanilla[0]", func(r *Request) {
			r.CommROld, r.CommDNew = r.CommDNew, r.CommROld
		}},
		{"update-2KiB", "comm_r_new: is not the hash of comm_c and the root in proof_r_new of vanilla[0]", func(r *Request) {
			r.CommRNew, r.CommDNew = r.CommDNew, r.CommRNew
		}},
		{"update-2KiB", "comm_r_new: is not the hash of comm_c and the root in proof_r_new of vanilla[0]", func(r *Request) { r.CommRNew = r.CommROld }},
		{"update-2KiB", "comm_d_new: is not the root in proof_d_new of vanilla[0]", func(r *Request) { r.CommDNew = r.CommROld }},

		{"update-2KiB", "vanilla[0].apex_leafs: has 8 items, not 128", func(r *Request) {
			r.SectorSize, r.Vanilla = 16<<10, [][]byte{r.Vanilla[0], r.Vanilla[0]}
		}},
		{"update-2KiB", "vanilla[0].challenge_proofs[0].proof_r_old.data: is variant 0, not 1", func(r *Request) { r.SectorSize = 4 << 10 }},
		{"update-16KiB", "vanilla[0].challenge_proofs[0].proof_r_old.data: is variant 1, not 2", func(r *Request) { r.SectorSize = 32 << 10 }},
		{"update-16KiB", "vanilla[1]: 1 bytes follow the end of the data", func(r *Request) { r.Vanilla[1] = append(r.Vanilla[1], 0) }},
	} {
		_, req := load(t, test.name)
		test.change(req)
		_, err := decodeAndCheck(req)
		require.EqualError(t, err, test.want)
		require.True(t, namesField(err))
	}

	// Updates of two sectors mixed: the second partition is of other commitments.
	_, a := load(t, "update-16KiB")
	p, err := ParamsFor(a.SectorSize)
	require.NoError(t, err)
	b := sectorRequest(p)
	_, err = decodeAndCheck(b)
	require.NoError(t, err)
	a.Vanilla[1] = b.Vanilla[1]
	_, err = decodeAndCheck(a)
	require.EqualError(t, err, "vanilla[1].comm_c: has neither comm_r_old nor comm_r_new as its hash with the roots of tree R")
}

// What Decode or Check find in a vanilla proof that has been changed, and what they call it.
func TestFaultNames(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(p *PartitionProof)
	}{
		{"challenge_proofs[3].proof_d_new.root: is not that of challenge_proofs[0]", func(p *PartitionProof) { p.Challenges[3].DNew.Root.SetOne() }},
		{"challenge_proofs[2].proof_r_old: proves leaf ", func(p *PartitionProof) { p.Challenges[2].ROld = p.Challenges[3].ROld }},
		{"challenge_proofs[2].proof_d_new: proves leaf ", func(p *PartitionProof) { p.Challenges[2].DNew = p.Challenges[3].DNew }},
		{"challenge_proofs[2].proof_r_new: proves leaf ", func(p *PartitionProof) { p.Challenges[2].RNew = p.Challenges[3].RNew }},
		{"challenge_proofs[2].proof_d_new: proves leaf ", func(p *PartitionProof) {
			last := len(p.Challenges[2].DNew.Path) - 1
			p.Challenges[2].DNew.Path[last].Index ^= 1 // of another partition than the others
		}},
		{"apex_leafs: are not the nodes below comm_d_new that this partition has", func(p *PartitionProof) { p.ApexLeaves[127].SetOne() }},
		{"challenge_proofs[0].proof_d_new.path: does not lead to comm_d_new", func(p *PartitionProof) {
			p.Challenges[0].DNew.Path[1].Siblings[0].SetOne()
		}},
		{"challenge_proofs[9].proof_d_new.path: does not lead to comm_d_new", func(p *PartitionProof) { p.Challenges[9].DNew.Leaf.SetOne() }},
		{"challenge_proofs[9].proof_r_old.path: does not lead to the root that comm_r_old has", func(p *PartitionProof) {
			p.Challenges[9].ROld.Path[1].Siblings[6].SetOne()
		}},
		{"challenge_proofs[9].proof_r_new.path: does not lead to the root that comm_r_new has", func(p *PartitionProof) {
			p.Challenges[9].RNew.Path[0].Siblings[0].SetOne()
		}},
	} {
		_, req := load(t, "update-32KiB")
		p, err := ParamsFor(req.SectorSize)
		require.NoError(t, err)
		proof, err := DecodePartitionProof(p, req.Vanilla[1])
		require.NoError(t, err)
		test.change(proof)
		req.Vanilla[1] = encode(p, proof)
		_, err = decodeAndCheck(req)
		require.ErrorContains(t, err, "vanilla[1]."+test.want)
	}
}

// Trees that are right by themselves, but whose leaves are not encoded with rho, are refused.
func TestEncodingIsChecked(t *testing.T) {
	p, err := ParamsFor(2 << 10)
	require.NoError(t, err)
	c, proofs := new(Sparse).sector(p, 0)
	part := &Partition{Params: p, Commitments: c, Proof: proofs[0]}
	challenge := &part.Proof.Challenges[4]
	require.NoError(t, part.checkChallenge(challenge, c.phi()))
	phi := c.phi()
	phi.Double(&phi)
	require.EqualError(t, part.checkChallenge(challenge, phi), "proof_r_new.leaf: is not the old replica's leaf plus rho times the new data's")
}

// Property: a vanilla proof with any one byte changed is refused by the name of a field: in
// Decode, or by the path or tree that the byte belongs to, which Check is made of. A sample of
// them goes through Check itself, as a caller's would.
func TestAnyByteChangedIsRefused(t *testing.T) {
	for _, name := range caseNames {
		_, good := load(t, name)
		p, err := ParamsFor(good.SectorSize)
		require.NoError(t, err)
		last := len(good.Vanilla) - 1
		before, err := DecodePartitionProof(p, good.Vanilla[last])
		require.NoError(t, err)
		stride := 1
		if testing.Short() || name != "update-2KiB" {
			stride = 23
		}
		var wg sync.WaitGroup
		const workers = 2
		for worker := range workers {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(1, uint64(worker)))
				req := *good
				req.Vanilla = slices.Clone(good.Vanilla)
				data := slices.Clone(good.Vanilla[last])
				req.Vanilla[last] = data
				for at := worker * stride; at < len(data); at += workers * stride {
					change := byte(1 + rng.IntN(255))
					data[at] ^= change
					if err := refuse(&req, before, rng.IntN(400) == 0); !namesField(err) {
						t.Errorf("%s: byte %d changed by %#x: %v", name, at, change, err)
					}
					data[at] ^= change
				}
			})
		}
		wg.Wait()
	}
}

// refuse returns why a request is refused whose last vanilla proof differs from before.
func refuse(req *Request, before *PartitionProof, whole bool) error {
	s, err := Decode(context.Background(), req)
	if err != nil {
		return err
	}
	if whole {
		return s.Check(context.Background())
	}
	part := &s.Partitions[len(s.Partitions)-1]
	if !slices.Equal(part.Proof.ApexLeaves, before.ApexLeaves) {
		return part.checkApex()
	}
	for i := range before.Challenges {
		a, b := &part.Proof.Challenges[i], &before.Challenges[i]
		if !equal(&a.ROld, &b.ROld) || !equal(&a.DNew, &b.DNew) || !equal(&a.RNew, &b.RNew) {
			return part.checkChallenge(a, s.phi())
		}
	}
	return errors.New("nothing differs")
}

func equal(a, b *merkle.Proof) bool {
	same := a.Leaf == b.Leaf
	for i := range a.Path {
		same = same && slices.Equal(a.Path[i].Siblings, b.Path[i].Siblings)
	}
	return same
}

// Property: a commitment with any one bit changed is refused by the name of a field.
func TestAnyBitOfACommitment(t *testing.T) {
	_, req := load(t, "update-16KiB")
	for _, comm := range [][]byte{req.CommROld, req.CommRNew, req.CommDNew} {
		for bit := range 8 * len(comm) {
			comm[bit/8] ^= 1 << (bit % 8)
			_, err := Decode(context.Background(), req)
			require.True(t, namesField(err), "%v", err)
			comm[bit/8] ^= 1 << (bit % 8)
		}
	}
	_, err := decodeAndCheck(req)
	require.NoError(t, err)
}

// A vanilla proof cut short anywhere is refused.
func TestTruncatedIsRefused(t *testing.T) {
	for _, name := range caseNames {
		_, req := load(t, name)
		p, err := ParamsFor(req.SectorSize)
		require.NoError(t, err)
		for n := 0; n < len(req.Vanilla[0]); n += 7 {
			if _, err := DecodePartitionProof(p, req.Vanilla[0][:n]); !namesField(err) {
				t.Fatalf("%s cut to %d bytes: %v", name, n, err)
			}
		}
	}
}

// Property: a done context stops everything.
func TestCancelled(t *testing.T) {
	_, req := load(t, "update-2KiB")
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Decode(ctx, req)
	require.NoError(t, err)
	circuit := NewCircuit(s.Params)
	cancel()
	require.ErrorIs(t, s.Check(ctx), context.Canceled)
	_, err = circuit.Witness(ctx, &s.Partitions[0])
	require.ErrorIs(t, err, context.Canceled)
	_, err = Decode(ctx, req)
	require.ErrorIs(t, err, context.Canceled)
}

// Whatever is decoded is what would be encoded: a vanilla proof has one form.
func FuzzDecodePartitionProof(f *testing.F) {
	var params []Params
	for _, name := range caseNames {
		_, req := load(f, name)
		p, err := ParamsFor(req.SectorSize)
		require.NoError(f, err)
		f.Add(len(params), req.Vanilla[0])
		params = append(params, p)
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		p := params[uint(i)%uint(len(params))]
		var proof *PartitionProof
		var err error
		bounded.Allocation(t, len(data), func() { proof, err = DecodePartitionProof(p, data) })
		if err != nil {
			var fault *FieldError
			require.True(t, errors.As(err, &fault))
			return
		}
		require.Equal(t, data, encode(p, proof))
	})
}

// No request makes Decode or Check panic.
func FuzzDecode(f *testing.F) {
	for _, name := range caseNames {
		_, req := load(f, name)
		f.Add(req.SectorSize, req.CommROld, req.CommRNew, req.CommDNew, req.Vanilla[0], req.Vanilla[len(req.Vanilla)-1])
	}
	f.Fuzz(func(t *testing.T, size uint64, rOld, rNew, dNew, first, second []byte) {
		req := &Request{SectorSize: size, CommROld: rOld, CommRNew: rNew, CommDNew: dNew, Vanilla: [][]byte{first}}
		if size >= 16<<10 {
			req.Vanilla = append(req.Vanilla, second)
		}
		var s *Statement
		var err error
		bounded.Allocation(t, len(rOld)+len(rNew)+len(dNew)+len(first)+len(second), func() { s, err = decodeAndCheck(req) })
		if err != nil {
			var fault *FieldError
			require.True(t, errors.As(err, &fault))
			return
		}
		for k := range s.Partitions {
			require.Len(t, s.Partitions[k].PublicInputs(), 4)
		}
	})
}

func BenchmarkDecodeAndCheck8MiB(b *testing.B) {
	p, err := ParamsFor(8 << 20)
	require.NoError(b, err)
	req := sectorRequest(p)
	for b.Loop() {
		if _, err := decodeAndCheck(req); err != nil {
			b.Fatal(err)
		}
	}
}
