// Package merkle has the shapes of a sector's Merkle trees and inclusion proofs in them:
// their serialised form, and the way from a leaf to the root.
//
// A tree is base trees of one arity, which may be joined under sub trees of another, and
// those under one top tree. The hash is the caller's: Poseidon in the replica's trees,
// SHA-256 in the data's. The package knows nothing of what a root stands for or which leaf
// must be proven.
package merkle
