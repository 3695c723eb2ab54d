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
// There are two adders for each group. Where the processor multiplies integers
// of 52 bits in vectors (package fp8), eight additions are made at once; other
// processors have the scalar adders. Both read and write the same points and
// give the same sums.
//
// # Figures
//
// On two cores of a Zen 4 EPYC a multiplication takes 33.5 ns with gnark-crypto
// and, with the constants loaded anew each time, 10 to 13 ns with fp8, whose
// limit is 32 cycles. An addition in G1 has 6, one in G2 15. In the cache, and
// in processor time, an addition takes:
//
//	    scalar   vectors
//	G1  230 ns    81 ns
//	G2  564 ns   200 ns
//
// A whole sum in G1 takes 130 ns an addition with vectors, at any size: some 20
// of the others are for waiting for bases, which are anywhere in memory, 10 to
// copy them and 15 to cut and sort scalars. It takes 270 to 290 ns with the
// scalar adders and 330 to 400 with gnark-crypto. Processor time is compared, as
// the machine did other work too; the last four sums' scalar figures were not
// taken beside those with vectors:
//
//	                          cpu-ms             vectors are faster than
//	                          scalar   vectors   scalar   gnark-crypto
//	G1, 2^12 random scalars     35        17      2.0      3.1
//	G1, 2^16                   390       180      2.15     2.6
//	G1, 2^17                   720       330      2.2      2.8
//	G1, 2^20                  4850      2270      2.1      3.0
//	G2, 2^12                    79        34      2.3      3.9
//	G2, 2^16                   915       400      2.3      3.0
//	G2, 2^18                  3040      1370      2.2      3.2
//	G1, 2^20 random bits       137        60      2.3      4.6
//	multiples of G1, 2^17      625       285      2.2     41
//	multiples of G2, 2^15      430       182      2.4     36
//
// # What was not done
//
// With vectors, asking for a block's bases while the block before is summed
// gained 5 % at 2^17 and nothing at 2^20. Keeping buckets in limbs of 52 bits
// would save little: changing the form on the way from and to memory is some
// shifts for eight points, made while multiplications go on.
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
