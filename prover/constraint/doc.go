// Package constraint holds rank-1 constraint systems as a few templates
// repeated with shifted variables.
//
// The circuits of Filecoin's proofs are the same few gadgets thousands of times
// over: a SHA-256 compression, a Poseidon permutation, a Merkle step. Builder
// records each such gadget once, as a template with local variable numbers, and
// every use of it as an instance: where its variables begin and which variables
// of the surrounding frame it is connected to. A 32 GiB PoRep partition, whose
// 722 million non-zero terms take others 25.7 GiB, becomes 59 MB, a window PoSt of
// as many constraints a few hundred kilobytes, and
// any range of its constraints can be expanded independently of the rest, by
// several threads or by a GPU.
//
// Numbering is that of the originals' sequential synthesis: inputs, auxiliary
// variables and constraints each count up in the order in which they are made.
//
// The package knows nothing of gadgets, hash functions or proving.
package constraint
