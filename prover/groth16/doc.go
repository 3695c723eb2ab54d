// Package groth16 makes and checks Groth16 proofs over BLS12-381, byte for
// byte as bellperson does: the 192-byte proof encoding, the verifying key and
// verification (one proof or a batch), and the interfaces between the pipeline
// and whatever computes proofs (Device, Work), with the implementation that
// runs on the CPU.
//
// Notation follows J. Groth, "On the Size of Pairing-based Non-interactive
// Arguments" (EUROCRYPT 2016, https://eprint.iacr.org/2016/260), section 3.2:
// a proof is the triple A, B, C; the proving key is the lists of points H, L,
// A, B in G1 and B in G2.
//
// The package knows constraint systems and witnesses, but no circuit in
// particular, no file format of keys (see package params) and nothing of
// requests, partitions or locks.
package groth16
