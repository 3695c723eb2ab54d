// Package post is proof of spacetime: winning PoSt of one sector, and window PoSt of the
// sectors of a deadline. It reads vanilla proofs and checks them against a request, splits
// them into partitions, and has their circuit, witness and public inputs.
//
// It knows nothing of how a partition is proven or when, nor of the boundary over which
// requests arrive.
//
// Source: storage-proofs-post (fallback) and filecoin-proofs (api/post_util.rs,
// winning_post.rs, window_post.rs). Both kinds are one circuit with other counts: FIP
// documents call it fallback PoSt.
package post
