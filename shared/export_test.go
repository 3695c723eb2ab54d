package shared

import "bytes"

// For tests outside the package, which use it as a host and a plugin do.
var (
	NewServer = newServer
	Register  = register
	Rotate    = rotate
)

// OnHeap is a copy of a request whose vanilla proofs are not the host's memory.
func OnHeap(r Request) Request {
	vanilla := make([][]byte, len(r.Vanilla))
	for i, v := range r.Vanilla {
		vanilla[i] = bytes.Clone(v)
	}
	r.Vanilla, r.mapped = vanilla, nil
	return r
}
