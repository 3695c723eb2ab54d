// Package poseidon is the Poseidon hash over the scalar field of BLS12-381, as
// Filecoin uses it: neptune's instances of standard strength for arities 2, 4, 8
// and 11, with the domain tag of a full Merkle-tree node, and for arity 2 also
// with that of a sector update's randomness.
//
// It makes the constants once, computes hashes, and can write down the values of
// every step in the order in which neptune's legacy circuit allocates them. It
// knows nothing of trees, proofs or constraint systems.
//
// Sources: "Poseidon: A New Hash Function for Zero-Knowledge Proof Systems"
// (ePrint 2019/458), and neptune for the choices that the paper leaves open.
package poseidon
