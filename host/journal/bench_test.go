package journal

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// BenchmarkAccept is what a journal costs a request before it is accepted, and at its end: syncs of the disk, and for
// large ones a SHA-256 and the writing. A winning PoSt has about 10 KB, a 32 GiB C1 50 MB.
func BenchmarkAccept(b *testing.B) {
	for _, size := range []int{10_000, 50_000_000} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			j, _, err := Open(b.TempDir(), hclog.NewNullLogger())
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			r := request("r", bytes.Repeat([]byte("v"), size))
			b.SetBytes(int64(size))
			for b.Loop() {
				digest, err := DigestOf(r)
				if err != nil {
					b.Fatal(err)
				}
				key, err := j.Accept(r, digest)
				if err == nil {
					err = j.Finish(Entry{Key: key, Request: *r, Digest: digest}, Answer{At: time.Now()})
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
