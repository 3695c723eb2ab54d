// Package gadget holds the building blocks of Filecoin's circuits: bits, packed
// numbers, Poseidon, SHA-256, and the step of a Merkle path.
//
// Each gadget has two halves side by side. The constraint half extends a
// constraint.Builder with the gadget's variables and constraints. The witness
// half, named Write…, writes the values of the same variables in the same order
// to a witness.Writer, without going through linear combinations. Both follow
// the allocation order of the originals (bellpepper, storage-proofs-core's
// gadgets, neptune's legacy circuit), which real parameter files depend on.
//
// The package knows nothing of sectors, challenges or proofs.
package gadget
