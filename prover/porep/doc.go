// Package porep is proof of replication: the second commit phase (C2) of sealing a
// sector. It reads the first phase's output in both of its JSON forms, checks it
// completely, and has the circuit, witness and public inputs of its partitions.
//
// It knows nothing of how a partition is proven or when, nor of the boundary over which
// requests arrive.
//
// Source: storage-proofs-porep (stacked), storage-proofs-core (drgraph, feistel, por) and
// filecoin-proofs (api/seal.rs, parameters.rs). The specification calls the construction
// stacked DRG, or SDR.
package porep
