// Package update is proof of a sector update (SnapDeals): that new data was encoded into
// the replica of a sector that had none. It reads the vanilla proofs of all partitions,
// checks them against the commitments before and after, and has the partitions' circuit,
// witness and public inputs.
//
// It knows nothing of how a partition is proven or when, nor of the boundary over which
// requests arrive.
//
// Source: storage-proofs-update (the empty sector update, with SHA-256 over the data) and
// filecoin-proofs (api/update.rs); FIP-0019 describes the construction.
package update
