// Package msm computes sums of multiples of BLS12-381 points on the CPU: the
// multi-exponentiations of a Groth16 proof, and for a parameter setup many
// multiples of one point.
//
// Everything rests on one operation, the batched affine addition (adder): many
// independent additions share one field inversion by Montgomery's trick and
// then cost 6 field multiplications each in G1, where a mixed Jacobian addition
// takes 11. All sums are trees of such batches: of the points of a bucket
// (windowSum), of the buckets of a window (weightedSum), of selected points
// (selectedSum) and of the windows of a product (FixedBase). Nothing depends on
// the points being distinct: infinity, equal and opposite points are right
// wherever they occur.
//
// # Figures
//
// On two cores of a Zen 4 EPYC one multiplication of gnark-crypto takes 33.5 ns,
// so the limit of an addition in G1 is 201 ns and in G2, with 15
// multiplications, 505 ns. In the cache the adders take 230 and 564 ns; a whole
// sum takes 270 to 290 ns of processor time an addition in G1 at any size, where
// gnark-crypto's takes 330 to 400. Processor time is compared, as the machine
// did other work too:
//
//	                         cpu-ms   times faster than gnark-crypto
//	G1, 2^16 random scalars     379   1.2
//	G1, 2^17                    690   1.3
//	G1, 2^20                   4800   1.35
//	G2, 2^16                    900   1.3
//	G2, 2^18                   3040   1.4
//	G1, 2^20 random bits        137   2.0
//	multiples of G1, 2^17       625   18
//	multiples of G2, 2^15       430   15
//
// # What was not done
//
// The number of additions in G1 for n = 2^17 is 19.1 n. Splitting scalars by the
// endomorphism of G1 would make it 18 n (20 for 21.25 at 2^16), less a
// multiplication a point, and nothing for 2^20: choosing s or r-s already saves
// the bit that makes windows of 17 bits fit. Precomputed multiples of fixed
// bases would make it 17 n with 4 times the bases' memory and 15.5 n with 15
// times, which only pays for the smallest circuits. Ordering buckets by size,
// for trees of one shape, gained 1 %.
//
// The package knows points and scalars only: nothing of circuits, witnesses,
// proving keys or files.
package msm
