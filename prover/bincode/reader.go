package bincode

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// FieldError says which field of the data is wrong, and how.
type FieldError struct {
	Field  string // such as inclusion_proofs[7].path[1].index; empty: the data as a whole
	Reason string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// In puts the field inside another: In("proofs[3]") of an error in index is one in
// proofs[3].index. Errors of other types pass unchanged.
func In(outer string, err error) error {
	var field *FieldError
	if !errors.As(err, &field) {
		return err
	}
	switch {
	case field.Field == "":
		return &FieldError{outer, field.Reason}
	case field.Field[0] == '[':
		return &FieldError{outer + field.Field, field.Reason}
	default:
		return &FieldError{outer + "." + field.Field, field.Reason}
	}
}

// Reader reads values one after the other. After the first fault it returns zeros, and Err
// the fault.
type Reader struct {
	rest []byte
	err  error
}

// NewReader returns a reader of data, which it does not change.
func NewReader(data []byte) *Reader {
	return &Reader{rest: data}
}

// Err returns the first fault, a *FieldError.
func (r *Reader) Err() error { return r.err }

// Fail records a fault that the caller found in a value, unless there was one before.
func (r *Reader) Fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = &FieldError{field, fmt.Sprintf(format, args...)}
	}
}

// In puts a fault, if there is one, inside the named field.
func (r *Reader) In(outer string) {
	if r.err != nil {
		r.err = In(outer, r.err)
	}
}

// Finish returns the first fault; bytes left over are one.
func (r *Reader) Finish() error {
	if len(r.rest) > 0 {
		r.Fail("", "%d bytes follow the end of the data", len(r.rest))
	}
	return r.err
}

// take returns the next n bytes, or nil.
func (r *Reader) take(field string, n int) []byte {
	if r.err != nil {
		return nil
	}
	if len(r.rest) < n {
		r.Fail(field, "the data ends %d bytes into a field of %d", len(r.rest), n)
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Uint64 reads a u64 or usize.
func (r *Reader) Uint64(field string) uint64 {
	b := r.take(field, 8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// Count reads the number of items of a list, which must be want.
func (r *Reader) Count(field string, want int) {
	if n := r.Uint64(field); r.err == nil && n != uint64(want) {
		r.Fail(field, "has %d items, not %d", n, want)
	}
}

// Variant reads the number of an enum's variant, which must be want.
func (r *Reader) Variant(field string, want uint32) {
	b := r.take(field, 4)
	if b == nil {
		return
	}
	if n := binary.LittleEndian.Uint32(b); n != want {
		r.Fail(field, "is variant %d, not %d", n, want)
	}
}

// Element reads a field element: 32 bytes, little endian, below the modulus.
func (r *Reader) Element(field string) fr.Element {
	b := r.take(field, fr.Bytes)
	if b == nil {
		return fr.Element{}
	}
	e, err := fr.LittleEndian.Element((*[fr.Bytes]byte)(b))
	if err != nil {
		r.Fail(field, "is not below the field's modulus")
		return fr.Element{}
	}
	return e
}

// Elements reads a list of len(to) field elements.
func (r *Reader) Elements(field string, to []fr.Element) {
	r.Count(field, len(to))
	for i := range to {
		if r.err != nil {
			return
		}
		to[i] = r.Element("")
		if r.err != nil {
			r.In(fmt.Sprintf("%s[%d]", field, i))
		}
	}
}
