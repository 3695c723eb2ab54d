package constraint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"runtime"
	"slices"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Digest identifies a constraint system, chunk by chunk, independently of how
// it is stored. Two systems with equal digests have the same matrices.
type Digest struct {
	Inputs, Aux, Constraints int
	TermsA, TermsB, TermsC   uint64   // non-zero terms
	Chunk                    int      // constraints a chunk
	Chunks                   []string // SHA-256 of each chunk's constraints, hex
	Total                    string   // SHA-256 over the counts and the chunks, hex
}

// Digest computes the digest with chunk constraints a chunk, on all cores.
//
// For each constraint, for A, B and C in turn, a chunk hashes the number of
// terms (u32) and each term's variable (u32; bit 31 marks auxiliary ones) and
// coefficient (32 bytes), all little endian, sorted by variable. The total
// hashes inputs, auxiliary variables and constraints as u64, then the chunks'
// digests. done, if not nil, is told how many constraints have been hashed, and
// may be called from several goroutines.
func (s *System) Digest(ctx context.Context, chunk int, done func(constraints int)) (*Digest, error) {
	n := s.NumConstraints()
	encoded := make([][fr.Bytes]byte, len(s.coeffs))
	for i := range s.coeffs {
		fr.LittleEndian.PutElement(&encoded[i], s.coeffs[i])
	}
	d := &Digest{
		Inputs: s.NumInputs(), Aux: s.NumAux(), Constraints: n,
		Chunk: chunk, Chunks: make([]string, (n+chunk-1)/chunk),
	}
	var mu sync.Mutex
	err := Parallel(ctx, n, chunk, runtime.GOMAXPROCS(0), func(from, to int) error {
		h := sha256.New()
		terms := [3]uint64{}
		buf := make([]byte, 0, 1<<16)
		var merged []Entry
		number := 0
		s.Rows(from, to, func(i int, a, b, c []Entry) bool {
			for m, lc := range [3][]Entry{a, b, c} {
				sortEntries(lc)
				k, ok := len(lc), true
				for j := 1; j < len(lc); j++ {
					ok = ok && lc[j].Var != lc[j-1].Var
				}
				if ok {
					buf = binary.LittleEndian.AppendUint32(buf, uint32(k))
					for _, e := range lc {
						buf = binary.LittleEndian.AppendUint32(buf, e.Var)
						buf = append(buf, encoded[e.Coeff][:]...)
					}
				} else {
					merged = append(merged[:0], lc...)
					buf, k = s.appendMerged(buf, merged)
				}
				terms[m] += uint64(k)
			}
			if len(buf) > 1<<15 {
				h.Write(buf)
				buf = buf[:0]
			}
			number++
			return number&0xffff != 0 || ctx.Err() == nil
		})
		if err := ctx.Err(); err != nil {
			return err
		}
		h.Write(buf)
		mu.Lock()
		defer mu.Unlock()
		d.Chunks[from/chunk] = hex.EncodeToString(h.Sum(nil))
		d.TermsA += terms[0]
		d.TermsB += terms[1]
		d.TermsC += terms[2]
		if done != nil {
			done(to - from)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var total bytes.Buffer
	for _, x := range []int{d.Inputs, d.Aux, d.Constraints} {
		total.Write(binary.LittleEndian.AppendUint64(nil, uint64(x)))
	}
	for _, c := range d.Chunks {
		raw, _ := hex.DecodeString(c) // made by EncodeToString above
		total.Write(raw)
	}
	sum := sha256.Sum256(total.Bytes())
	d.Total = hex.EncodeToString(sum[:])
	return d, nil
}

// sortEntries sorts by variable. Rows are short or nearly sorted, which is what
// insertion is good at.
func sortEntries(lc []Entry) {
	if len(lc) > 64 {
		slices.SortFunc(lc, func(a, b Entry) int { return cmp.Compare(a.Var, b.Var) })
		return
	}
	for i := 1; i < len(lc); i++ {
		e := lc[i]
		j := i
		for ; j > 0 && lc[j-1].Var > e.Var; j-- {
			lc[j] = lc[j-1]
		}
		lc[j] = e
	}
}

// appendMerged encodes a sorted row in which variables repeat: their
// coefficients add up, and a sum of zero is no term.
func (s *System) appendMerged(buf []byte, lc []Entry) ([]byte, int) {
	at := len(buf)
	buf = append(buf, 0, 0, 0, 0)
	n := 0
	for i := 0; i < len(lc); {
		v, sum := lc[i].Var, s.coeffs[lc[i].Coeff]
		for i++; i < len(lc) && lc[i].Var == v; i++ {
			sum.Add(&sum, &s.coeffs[lc[i].Coeff])
		}
		if sum.IsZero() {
			continue
		}
		var raw [fr.Bytes]byte
		fr.LittleEndian.PutElement(&raw, sum)
		buf = binary.LittleEndian.AppendUint32(buf, v)
		buf = append(buf, raw[:]...)
		n++
	}
	binary.LittleEndian.PutUint32(buf[at:], uint32(n))
	return buf, n
}
