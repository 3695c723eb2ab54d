package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-prover/interlock/shared"
)

// header is a request without its vanilla proofs, as it is written. Its fields are those of [shared.Request].
type header struct {
	ID              string
	Kind            shared.Kind
	Priority        shared.Priority
	SectorSize      shared.SectorSize
	MinerID         uint64
	SectorNumber    *uint64 `json:",omitempty"`
	RegisteredProof *uint64 `json:",omitempty"`
	Randomness      []byte  `json:",omitempty"`
	APIVersion      string  `json:",omitempty"`
	Partition       *uint32 `json:",omitempty"`
	CommROld        []byte  `json:",omitempty"`
	CommRNew        []byte  `json:",omitempty"`
	CommDNew        []byte  `json:",omitempty"`
	Deadline        time.Time
}

func headerOf(r *shared.Request) header {
	return header{
		ID: r.ID, Kind: r.Kind, Priority: r.Priority, SectorSize: r.SectorSize, MinerID: r.MinerID, SectorNumber: r.SectorNumber,
		RegisteredProof: r.RegisteredProof,
		Randomness:      r.Randomness, APIVersion: r.APIVersion, Partition: r.Partition,
		CommROld: r.CommROld, CommRNew: r.CommRNew, CommDNew: r.CommDNew, Deadline: r.Deadline,
	}
}

func (h *header) request() shared.Request {
	return shared.Request{
		ID: h.ID, Kind: h.Kind, Priority: h.Priority, SectorSize: h.SectorSize, MinerID: h.MinerID, SectorNumber: h.SectorNumber,
		RegisteredProof: h.RegisteredProof,
		Randomness:      h.Randomness, APIVersion: h.APIVersion, Partition: h.Partition,
		CommROld: h.CommROld, CommRNew: h.CommRNew, CommDNew: h.CommDNew, Deadline: h.Deadline,
	}
}

// DigestOf digests a request. Two requests have the same digest if they say the same, whatever their priority and
// deadline.
func DigestOf(r *shared.Request) (Digest, error) {
	h := headerOf(r)
	h.Priority, h.Deadline = 0, time.Time{}
	text, err := json.Marshal(h)
	if err != nil {
		return Digest{}, err
	}
	sum := sha256.New()
	write := func(b []byte) {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		sum.Write(b)
	}
	write(text)
	for _, v := range r.Vanilla {
		write(v)
	}
	return Digest(sum.Sum(nil)), nil
}

// record is an entry as the database has it: this as JSON, behind the SHA-256 of the key and that.
type record struct {
	Header   header
	Digest   []byte
	Accepted time.Time
	Answer   *answerRecord `json:",omitempty"`
}

type answerRecord struct {
	At         time.Time
	Error      []byte `json:",omitempty"` // see shared.EncodeError; empty for a proof
	Proof      []byte `json:",omitempty"`
	Partitions int
	Timings    shared.Timings
	Insecure   bool
}

var bucket = []byte("requests")

func (k Key) bytes() []byte { return binary.BigEndian.AppendUint64(nil, uint64(k)) }

func encodeRecord(e *Entry) ([]byte, error) {
	r := record{Header: headerOf(&e.Request), Digest: e.Digest[:], Accepted: e.Accepted}
	if a := e.Answer; a != nil {
		r.Answer = &answerRecord{
			At: a.At, Proof: a.Result.Proof, Partitions: a.Result.Partitions, Timings: a.Result.Timings, Insecure: a.Result.InsecureParams,
		}
		if a.Err != nil {
			encoded, err := shared.EncodeError(a.Err)
			if err != nil {
				return nil, err
			}
			r.Answer.Error = encoded
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return append(recordSum(e.Key.bytes(), text), text...), nil
}

func recordSum(key, text []byte) []byte {
	sum := sha256.New()
	sum.Write(key)
	sum.Write(text)
	return sum.Sum(nil)
}

func decodeRecord(key, value []byte) (Entry, error) {
	if len(key) != 8 || len(value) < sha256.Size {
		return Entry{}, fmt.Errorf("%w: a record of %d bytes", ErrDamaged, len(value))
	}
	text := value[sha256.Size:]
	if !bytes.Equal(recordSum(key, text), value[:sha256.Size]) {
		return Entry{}, fmt.Errorf("%w: the checksum of record %x", ErrDamaged, key)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil || len(r.Digest) != len(Digest{}) {
		return Entry{}, fmt.Errorf("%w: record %x: %v", ErrDamaged, key, err)
	}
	e := Entry{Key: Key(binary.BigEndian.Uint64(key)), Request: r.Header.request(), Digest: Digest(r.Digest), Accepted: r.Accepted}
	if a := r.Answer; a != nil {
		e.Answer = &Answer{At: a.At}
		if len(a.Error) > 0 {
			var err error
			if e.Answer.Err, err = shared.DecodeError(a.Error); err != nil {
				return Entry{}, fmt.Errorf("%w: record %x: %v", ErrDamaged, key, err)
			}
		} else {
			e.Answer.Result = shared.Result{
				RequestID: e.Request.ID, Proof: a.Proof, Partitions: a.Partitions, Timings: a.Timings, InsecureParams: a.Insecure,
			}
		}
	}
	return e, nil
}

// A request's file is this line, a length of 8 bytes, as much JSON (requestFile), the vanilla proofs, and the SHA-256 of
// all that.
const magic = "interlock request 1\n"

type requestFile struct {
	Header   header
	Digest   []byte
	Accepted time.Time
	Sizes    []int // of the vanilla proofs, bytes
}

// maxHeaderBytes bounds the JSON of a request's file: the sizes of 65,536 vanilla proofs, and a little.
const maxHeaderBytes = 1 << 20

// pieceBytes is how much is hashed, then written, while it is in the CPU's cache.
const pieceBytes = 1 << 18

// summed hashes what it passes on.
type summed struct {
	io.Writer
	sum hash.Hash
}

func (w *summed) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		piece := b[:min(len(b), pieceBytes)]
		w.sum.Write(piece)
		var k int
		k, err = w.Writer.Write(piece)
		n, b = n+k, b[len(piece):]
	}
	return n, err
}

// writeRequest writes a request's file. When it returns nil, the file and its name last.
func writeRequest(path string, e *Entry) (err error) {
	h := requestFile{Header: headerOf(&e.Request), Digest: e.Digest[:], Accepted: e.Accepted}
	for _, v := range e.Request.Vanilla {
		h.Sizes = append(h.Sizes, len(v))
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer removeOnError(path, &err)
	buffer := bufio.NewWriter(f) // for many short proofs; long ones pass it by
	w := &summed{buffer, sha256.New()}
	parts := append([][]byte{[]byte(magic), binary.BigEndian.AppendUint64(nil, uint64(len(text))), text}, e.Request.Vanilla...)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	_, err = buffer.Write(w.sum.Sum(nil))
	if err = errors.Join(err, buffer.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// readRequest reads a request's file. It fails with [ErrDamaged] if that is not as it was written.
func readRequest(path string) (Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Entry{}, err
	}
	const frame = len(magic) + 8 + sha256.Size
	if size := info.Size(); size < int64(frame) || size > int64(frame)+maxHeaderBytes+shared.MaxRequestBytes {
		return Entry{}, fmt.Errorf("%w: it has %d bytes", ErrDamaged, size)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return Entry{}, err
	}
	data, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if got := sha256.Sum256(data); !bytes.Equal(got[:], sum) || string(data[:len(magic)]) != magic {
		return Entry{}, fmt.Errorf("%w: its checksum is another", ErrDamaged)
	}
	data = data[len(magic):]
	length := binary.BigEndian.Uint64(data)
	data = data[8:]
	if length > uint64(len(data)) {
		return Entry{}, fmt.Errorf("%w: its header is cut off", ErrDamaged)
	}
	var h requestFile
	if err := json.Unmarshal(data[:length], &h); err != nil || len(h.Digest) != len(Digest{}) {
		return Entry{}, fmt.Errorf("%w: its header: %v", ErrDamaged, err)
	}
	data = data[length:]
	e := Entry{Request: h.Header.request(), Digest: Digest(h.Digest), Accepted: h.Accepted}
	for _, size := range h.Sizes {
		if size < 0 || size > len(data) {
			return Entry{}, fmt.Errorf("%w: its vanilla proofs are cut off", ErrDamaged)
		}
		e.Request.Vanilla = append(e.Request.Vanilla, data[:size:size])
		data = data[size:]
	}
	return e, nil
}
