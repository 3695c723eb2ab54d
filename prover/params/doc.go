// Package params reads, checks and writes the files that hold Groth16
// parameters, in bellperson's format: the verifying key, then the queries H, L,
// A, B in G1 and B in G2, each a big-endian u32 count and that many points,
// uncompressed and big endian (Zcash's encoding). A mainnet file has up to
// 57 GiB; it is mapped into memory and read by ranges, never as a whole.
//
// The package also makes development parameters from fixed, published toxic
// waste. They are insecure by construction, carry a label beside them, and are
// recognised by their points wherever they are copied.
//
// It knows constraint systems (to make parameters for one) and package
// groth16's keys, but no circuit in particular and nothing of proving.
package params
