// Package cuda computes proofs on NVIDIA cards, with libinterlock_cuda.so, which
// it loads at run time: a program without the library or without a card works,
// and learns what is missing when it asks for one.
//
// A Library is the loaded file, a Device an opened card, which implements
// groth16.Device. Keys that fit stay on the card in segments, parts of a query
// of at most some gigabytes; others are streamed through two buffers while the
// device phase runs. The arithmetic of the card's memory is in memory.go.
//
// What is asked of the library is the interface api; the calls into it are made
// in library_linux.go alone. The package knows nothing of the interlock or of
// requests: its callers hold the lock, and reserve what Footprint says of the
// budget that Memory returns.
package cuda
