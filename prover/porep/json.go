package porep

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/bincode"
)

// jsonReader reads JSON of a known form from a stream: a phase-1 output of 32 GiB is 50 MB,
// nearly all of it arrays of 32 numbers below 256. It is strict: objects must have exactly
// the fields expected, in any order, and lists no more items than there can be, so that
// nothing is allocated that the form does not call for. After the first fault methods
// return zeros, and err is the fault: a *FieldError, or an error of the stream.
type jsonReader struct {
	src     io.Reader
	buf     []byte
	at, end int // unread bytes are buf[at:end]
	eof     bool
	err     error
}

const (
	jsonBuffer  = 64 << 10
	jsonMaxName = 128 // bytes of a key or a name
)

func newJSONReader(src io.Reader) *jsonReader {
	return &jsonReader{src: src, buf: make([]byte, jsonBuffer)}
}

// fail records a fault in the value in hand, unless there was one before.
func (r *jsonReader) fail(format string, args ...any) {
	r.failIn("", format, args...)
}

// failIn records a fault in the named field of the object in hand.
func (r *jsonReader) failIn(field, format string, args ...any) {
	if r.err == nil {
		r.err = fault(field, format, args...)
	}
}

// fill makes at least n bytes available, unless the stream ends before.
func (r *jsonReader) fill(n int) {
	if r.end-r.at >= n {
		return
	}
	r.end = copy(r.buf, r.buf[r.at:r.end])
	r.at = 0
	for r.end < n && !r.eof && r.err == nil {
		k, err := r.src.Read(r.buf[r.end:])
		r.end += k
		if errors.Is(err, io.EOF) {
			r.eof = true
		} else if err != nil {
			r.err = err
		}
	}
}

// peek returns the next byte that is not white space, or 0 at the end.
func (r *jsonReader) peek() byte {
	for r.err == nil {
		if r.at == r.end {
			if r.fill(1); r.at == r.end {
				return 0
			}
		}
		switch c := r.buf[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// take reads the byte c if it is next.
func (r *jsonReader) take(c byte) bool {
	if r.peek() != c || r.err != nil {
		return false
	}
	r.at++
	return true
}

// expect reads the byte c, which must be next.
func (r *jsonReader) expect(c byte) {
	if !r.take(c) {
		r.unexpected(fmt.Sprintf("%q", c))
	}
}

func (r *jsonReader) unexpected(want string) {
	if c := r.peek(); c != 0 {
		r.fail("is not well formed: %q where %s is expected", c, want)
	} else {
		r.fail("ends where %s is expected", want)
	}
}

// finish checks that nothing follows.
func (r *jsonReader) finish() {
	if c := r.peek(); c != 0 {
		r.fail("%q follows the end of the data", c)
	}
}

// name reads a short string.
func (r *jsonReader) name() string {
	r.expect('"')
	r.fill(jsonMaxName + 1)
	n := bytes.IndexByte(r.buf[r.at:min(r.end, r.at+jsonMaxName+1)], '"')
	if r.err != nil {
		return ""
	}
	if n < 0 {
		r.fail("is a string that does not end within %d bytes", jsonMaxName)
		return ""
	}
	s := string(r.buf[r.at : r.at+n])
	r.at += n + 1
	for _, c := range []byte(s) {
		if c < ' ' || c == '\\' {
			r.fail("is a string with control or escaped characters")
			return ""
		}
	}
	return s
}

// number reads a whole number of at most limit.
func (r *jsonReader) number(limit uint64) uint64 {
	if c := r.peek(); c < '0' || c > '9' {
		r.unexpected("a whole number")
		return 0
	}
	r.fill(24) // more than any uint64 has digits
	var x uint64
	start := r.at
	for ; r.at < r.end; r.at++ {
		d := uint64(r.buf[r.at] - '0')
		if d > 9 {
			break
		}
		if d > limit || x > (limit-d)/10 || r.at > start && x == 0 {
			r.fail("is not a whole number from 0 to %d", limit)
			return 0
		}
		x = 10*x + d
	}
	if c := r.peek(); c == '.' || c == 'e' || c == 'E' {
		r.fail("is not a whole number from 0 to %d", limit)
	}
	return x
}

// null reads null.
func (r *jsonReader) null() {
	r.peek()
	r.fill(4)
	if r.err == nil && (r.end-r.at < 4 || string(r.buf[r.at:r.at+4]) != "null") {
		r.unexpected("null")
		return
	}
	r.at += 4
}

// bytes32 reads a list of 32 numbers below 256.
func (r *jsonReader) bytes32() (out [32]byte) {
	r.expect('[')
	for i := range out {
		// The usual way, without white space: digits and what ends them are in
		// the buffer.
		if r.end-r.at >= 4 {
			b := r.buf[r.at : r.at+4]
			x, k := uint(b[0]-'0'), 1
			for ; k < 3 && b[k]-'0' <= 9; k++ {
				x = 10*x + uint(b[k]-'0')
			}
			end := byte(',')
			if i == len(out)-1 {
				end = ']'
			}
			if b[0]-'0' <= 9 && x < 256 && (k == 1 || b[0] != '0') && b[k] == end {
				out[i] = byte(x)
				r.at += k + 1
				continue
			}
		}
		out[i] = byte(r.number(255))
		switch {
		case i < len(out)-1 && r.peek() == ']':
			r.fail("has %d bytes, not %d", i+1, len(out))
		case i < len(out)-1:
			r.expect(',')
		case r.peek() == ',':
			r.fail("has more than %d bytes", len(out))
		default:
			r.expect(']')
		}
		if r.err != nil {
			return [32]byte{}
		}
	}
	return out
}

// element reads a field element: 32 bytes, little endian, below the modulus.
func (r *jsonReader) element() fr.Element {
	raw := r.bytes32()
	x, err := fr.LittleEndian.Element(&raw)
	if err != nil {
		r.fail("is not below the field's modulus")
	}
	return x
}

// list reads a list of at most limit items, and returns how many there are.
func (r *jsonReader) list(limit int, item func(i int)) int {
	r.expect('[')
	if r.take(']') {
		return 0
	}
	for i := 0; r.err == nil; i++ {
		if i == limit {
			r.fail("has more than %d items", limit)
			break
		}
		if item(i); r.err != nil {
			r.err = bincode.In(fmt.Sprintf("[%d]", i), r.err)
			break
		}
		if r.take(']') {
			return i + 1
		}
		r.expect(',')
	}
	return 0
}

// items reads a list of n items.
func (r *jsonReader) items(n int, item func(i int)) {
	if k := r.list(n, item); k != n {
		r.fail("has %d items, not %d", k, n)
	}
}

// field is a field of an object and what reads it.
type field struct {
	name string
	read func()
}

// object reads an object that has exactly the given fields.
func (r *jsonReader) object(fields ...field) {
	r.require(fields, r.fields(fields))
}

// require checks that all fields were seen.
func (r *jsonReader) require(fields []field, seen []bool) {
	for i := range fields {
		if !seen[i] {
			r.failIn(fields[i].name, "is missing")
		}
	}
}

// fields reads an object that has some of the given fields and no others, and says which.
func (r *jsonReader) fields(fields []field) []bool {
	seen := make([]bool, len(fields))
	r.expect('{')
	if r.take('}') {
		return seen
	}
	for r.err == nil {
		key := r.name()
		r.expect(':')
		i := 0
		for i < len(fields) && fields[i].name != key {
			i++
		}
		switch {
		case r.err != nil:
			return seen
		case i == len(fields):
			r.failIn(key, "is not a field of this object")
		case seen[i]:
			r.failIn(key, "is given twice")
		default:
			seen[i] = true
			if fields[i].read(); r.err != nil {
				r.err = bincode.In(key, r.err)
			}
		}
		if r.take('}') {
			return seen
		}
		r.expect(',')
	}
	return seen
}

// text returns a stream of the characters of a string, which may be long. It ends at the
// closing quotation mark, and must be read to its end. Of escaped characters it knows the
// slash, which base64 has.
func (r *jsonReader) text() io.Reader {
	r.expect('"')
	return &textReader{r: r}
}

type textReader struct {
	r    *jsonReader
	done bool
}

func (t *textReader) Read(p []byte) (int, error) {
	r := t.r
	if t.done || len(p) == 0 {
		return 0, io.EOF
	}
	r.fill(2) // an escaped character
	if r.at == r.end {
		r.fail("is a string that does not end")
	}
	if r.err != nil {
		return 0, r.err
	}
	chunk := r.buf[r.at:min(r.end, r.at+len(p))]
	n := bytes.IndexAny(chunk, "\"\\")
	switch {
	case n < 0:
		n = copy(p, chunk)
		r.at += n
		return n, nil
	case n > 0:
		copy(p, chunk[:n])
		r.at += n
		return n, nil
	case chunk[0] == '"':
		r.at++
		t.done = true
		return 0, io.EOF
	case r.end-r.at >= 2 && r.buf[r.at+1] == '/':
		p[0] = '/'
		r.at += 2
		return 1, nil
	default:
		r.fail("is a string with escaped characters")
		return 0, r.err
	}
}
