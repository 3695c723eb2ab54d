// Package msm computes sums of multiples of BLS12-381 points on the CPU: the
// multi-exponentiations of a Groth16 proof, and for a parameter setup many
// multiples of one point.
//
// Everything rests on one operation, the batched affine addition (adder): many
// independent additions share one field inversion by Montgomery's trick and
// then cost 5 multiplications and a squaring each in G1, where a mixed Jacobian
// addition takes 7 and 4. All sums are arranged as trees of such batches, so
// nothing depends on the points being distinct: infinity, equal and opposite
// points are right wherever they occur. README.md has the figures.
//
// The package knows points and scalars only: nothing of circuits, witnesses,
// proving keys or files.
package msm
