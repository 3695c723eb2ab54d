#include "textflag.h"

// Vectors are [8][8]uint64, limb first: one register a limb. The constants are
// variables of vec_amd64.go.

// ROW adds x*b to the accumulators c0..c8 and takes a limb off the bottom by
// Montgomery's reduction: c1..c8 are then (x*b + c + m*p) / 2^52, where
// m = -c0/p mod 2^52. Since the lowest limb of the sum is then a multiple of
// 2^52, its carry is c0 / 2^52 rounded up, whatever m*p is.
//
// x is in Z0..Z7, b in Z27, the modulus in Z17..Z24, -1/p in Z25, 2^52-1 in Z26.
// Multiplicands are read modulo 2^52; accumulators have 12 bits to spare.
#define ROW(c0, c1, c2, c3, c4, c5, c6, c7, c8) \
	VPMADD52LUQ Z27, Z0, c0  \
	VPXORQ      c8, c8, c8   \
	VPXORQ      Z28, Z28, Z28 \
	VPMADD52LUQ Z27, Z1, c1  \
	VPMADD52LUQ Z25, c0, Z28 \
	VPMADD52LUQ Z27, Z2, c2  \
	VPMADD52HUQ Z27, Z0, c1  \
	VPADDQ      Z26, c0, c0  \
	VPMADD52LUQ Z27, Z3, c3  \
	VPMADD52HUQ Z27, Z1, c2  \
	VPSRLQ      $52, c0, c0  \
	VPMADD52LUQ Z27, Z4, c4  \
	VPMADD52HUQ Z27, Z2, c3  \
	VPADDQ      c0, c1, c1   \
	VPMADD52HUQ Z28, Z17, c1 \
	VPMADD52LUQ Z27, Z5, c5  \
	VPMADD52HUQ Z27, Z3, c4  \
	VPMADD52LUQ Z27, Z6, c6  \
	VPMADD52LUQ Z28, Z18, c1 \
	VPMADD52HUQ Z28, Z18, c2 \
	VPMADD52HUQ Z27, Z4, c5  \
	VPMADD52LUQ Z27, Z7, c7  \
	VPMADD52LUQ Z28, Z19, c2 \
	VPMADD52HUQ Z28, Z19, c3 \
	VPMADD52HUQ Z27, Z5, c6  \
	VPMADD52HUQ Z27, Z6, c7  \
	VPMADD52LUQ Z28, Z20, c3 \
	VPMADD52HUQ Z28, Z20, c4 \
	VPMADD52HUQ Z27, Z7, c8  \
	VPMADD52LUQ Z28, Z21, c4 \
	VPMADD52HUQ Z28, Z21, c5 \
	VPMADD52LUQ Z28, Z22, c5 \
	VPMADD52HUQ Z28, Z22, c6 \
	VPMADD52LUQ Z28, Z23, c6 \
	VPMADD52HUQ Z28, Z23, c7 \
	VPMADD52LUQ Z28, Z24, c7 \
	VPMADD52HUQ Z28, Z24, c8

// SHIFTED sets Z27 to the limb of y*2^32 at the given offset, its upper bits
// being arbitrary; y is at SI.
#define SHIFTED(offset) \
	VPSLLQ $32, (offset)(SI), Z27      \
	VPSRLQ $20, (offset-64)(SI), Z28   \
	VPORQ  Z28, Z27, Z27

// CARRY leaves 52 bits in limb c, which may be negative, and adds the rest to
// the next limb. Z26 is 2^52-1, t is overwritten.
#define CARRY(c, next, t) \
	VPSRAQ $52, c, t    \
	VPANDQ Z26, c, c    \
	VPADDQ t, next, next

#define CARRIES(c0, c1, c2, c3, c4, c5, c6, c7, t) \
	CARRY(c0, c1, t) \
	CARRY(c1, c2, t) \
	CARRY(c2, c3, t) \
	CARRY(c3, c4, t) \
	CARRY(c4, c5, t) \
	CARRY(c5, c6, t) \
	CARRY(c6, c7, t)

#define LOAD(p, c0, c1, c2, c3, c4, c5, c6, c7) \
	VMOVDQU64 (p), c0    \
	VMOVDQU64 64(p), c1  \
	VMOVDQU64 128(p), c2 \
	VMOVDQU64 192(p), c3 \
	VMOVDQU64 256(p), c4 \
	VMOVDQU64 320(p), c5 \
	VMOVDQU64 384(p), c6 \
	VMOVDQU64 448(p), c7

#define STORE(p, c0, c1, c2, c3, c4, c5, c6, c7) \
	VMOVDQU64 c0, (p)    \
	VMOVDQU64 c1, 64(p)  \
	VMOVDQU64 c2, 128(p) \
	VMOVDQU64 c3, 192(p) \
	VMOVDQU64 c4, 256(p) \
	VMOVDQU64 c5, 320(p) \
	VMOVDQU64 c6, 384(p) \
	VMOVDQU64 c7, 448(p)

#define CONSTANTS \
	VPBROADCASTQ ·modulus+0(SB), Z17  \
	VPBROADCASTQ ·modulus+8(SB), Z18  \
	VPBROADCASTQ ·modulus+16(SB), Z19 \
	VPBROADCASTQ ·modulus+24(SB), Z20 \
	VPBROADCASTQ ·modulus+32(SB), Z21 \
	VPBROADCASTQ ·modulus+40(SB), Z22 \
	VPBROADCASTQ ·modulus+48(SB), Z23 \
	VPBROADCASTQ ·modulus+56(SB), Z24 \
	VPBROADCASTQ ·inverse(SB), Z25    \
	VPBROADCASTQ ·mask(SB), Z26

// SUBTRACT subtracts the vector at p from Z0..Z7, limb by limb.
#define SUBTRACT(p) \
	VPSUBQ (p), Z0, Z0    \
	VPSUBQ 64(p), Z1, Z1  \
	VPSUBQ 128(p), Z2, Z2 \
	VPSUBQ 192(p), Z3, Z3 \
	VPSUBQ 256(p), Z4, Z4 \
	VPSUBQ 320(p), Z5, Z5 \
	VPSUBQ 384(p), Z6, Z6 \
	VPSUBQ 448(p), Z7, Z7

// MULTIPLE adds to limb c that of the multiple of p chosen by Z8.
#define MULTIPLE(i, c, t) \
	VPERMQ ·multiples+(64*i)(SB), Z8, t \
	VPADDQ t, c, c

// REDUCE brings Z0..Z7, a number between -2.9 p and 4 p whose limbs have signs
// and at most 54 bits, to 0..p-1 with limbs of 52 bits.
//
// Which multiple of p to add is told from the top limb and what the limb below
// carries into it. Without the other carries this is wrong by at most 1, and a
// multiple of p differs from that of 2^364 (p >> 364 + 1) by at most 4 * 2^364.
// The constant offset allows for both on the side of too large a result: it is
// in 0..p + 12 * 2^364. Then one in 10^4 results has a top limb as large as p's,
// and must be compared with p as a whole.
#define REDUCE \
	VPSRAQ           $52, Z6, Z9                \
	VPADDQ           Z9, Z7, Z9                 \
	VPADDQ.BCST      ·offset(SB), Z9, Z9        \
	VPXORQ           Z8, Z8, Z8                 \
	VPMADD52HUQ.BCST ·reciprocal(SB), Z9, Z8    \
	MULTIPLE(0, Z0, Z10) \
	MULTIPLE(1, Z1, Z11) \
	MULTIPLE(2, Z2, Z12) \
	MULTIPLE(3, Z3, Z13) \
	MULTIPLE(4, Z4, Z14) \
	MULTIPLE(5, Z5, Z15) \
	MULTIPLE(6, Z6, Z10) \
	MULTIPLE(7, Z7, Z11) \
	CARRIES(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z9) \
	VPCMPUQ.BCST     $5, ·modulus+56(SB), Z7, K1 \
	KORTESTB         K1, K1                     \
	JEQ              reduced                    \
	VPSUBQ.BCST      ·modulus+0(SB), Z0, Z8     \
	VPSUBQ.BCST      ·modulus+8(SB), Z1, Z9     \
	VPSUBQ.BCST      ·modulus+16(SB), Z2, Z10   \
	VPSUBQ.BCST      ·modulus+24(SB), Z3, Z11   \
	VPSUBQ.BCST      ·modulus+32(SB), Z4, Z12   \
	VPSUBQ.BCST      ·modulus+40(SB), Z5, Z13   \
	VPSUBQ.BCST      ·modulus+48(SB), Z6, Z14   \
	VPSUBQ.BCST      ·modulus+56(SB), Z7, Z15   \
	CARRIES(Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16) \
	VPMOVQ2M         Z15, K1                    \
	KNOTB            K1, K1                     \
	VMOVDQA64        Z8, K1, Z0                 \
	VMOVDQA64        Z9, K1, Z1                 \
	VMOVDQA64        Z10, K1, Z2                \
	VMOVDQA64        Z11, K1, Z3                \
	VMOVDQA64        Z12, K1, Z4                \
	VMOVDQA64        Z13, K1, Z5                \
	VMOVDQA64        Z14, K1, Z6                \
	VMOVDQA64        Z15, K1, Z7                \
reduced:

// PACK sets w to a >> right | b << left.
#define PACK(a, right, b, left, w) \
	VPSRLQ $right, a, w  \
	VPSLLQ $left, b, Z29 \
	VPORQ  Z29, w, w

// func Mul(z, x, y *Vec)
TEXT ·Mul(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), BX
	MOVQ y+16(FP), SI
	CONSTANTS
	LOAD(BX, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VPXORQ Z8, Z8, Z8
	VPXORQ Z9, Z9, Z9
	VPXORQ Z10, Z10, Z10
	VPXORQ Z11, Z11, Z11
	VPXORQ Z12, Z12, Z12
	VPXORQ Z13, Z13, Z13
	VPXORQ Z14, Z14, Z14
	VPXORQ Z15, Z15, Z15
	VPSLLQ $32, (SI), Z27
	ROW(Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16)
	SHIFTED(64)
	ROW(Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z8)
	SHIFTED(128)
	ROW(Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z8, Z9)
	SHIFTED(192)
	ROW(Z11, Z12, Z13, Z14, Z15, Z16, Z8, Z9, Z10)
	SHIFTED(256)
	ROW(Z12, Z13, Z14, Z15, Z16, Z8, Z9, Z10, Z11)
	SHIFTED(320)
	ROW(Z13, Z14, Z15, Z16, Z8, Z9, Z10, Z11, Z12)
	SHIFTED(384)
	ROW(Z14, Z15, Z16, Z8, Z9, Z10, Z11, Z12, Z13)
	SHIFTED(448)
	ROW(Z15, Z16, Z8, Z9, Z10, Z11, Z12, Z13, Z14)
	CARRIES(Z16, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z28)
	STORE(DI, Z16, Z8, Z9, Z10, Z11, Z12, Z13, Z14)
	VZEROUPPER
	RET

// func Sub(z, x, y *Vec)
TEXT ·Sub(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), BX
	MOVQ y+16(FP), SI
	VPBROADCASTQ ·mask(SB), Z26
	LOAD(BX, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	SUBTRACT(SI)
	VPADDQ.BCST ·twice+0(SB), Z0, Z0
	VPADDQ.BCST ·twice+8(SB), Z1, Z1
	VPADDQ.BCST ·twice+16(SB), Z2, Z2
	VPADDQ.BCST ·twice+24(SB), Z3, Z3
	VPADDQ.BCST ·twice+32(SB), Z4, Z4
	VPADDQ.BCST ·twice+40(SB), Z5, Z5
	VPADDQ.BCST ·twice+48(SB), Z6, Z6
	VPADDQ.BCST ·twice+56(SB), Z7, Z7
	CARRIES(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z28)
	STORE(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// func Add(z, x, y *Vec)
TEXT ·Add(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), BX
	MOVQ y+16(FP), SI
	VPBROADCASTQ ·mask(SB), Z26
	LOAD(BX, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VPADDQ (SI), Z0, Z0
	VPADDQ 64(SI), Z1, Z1
	VPADDQ 128(SI), Z2, Z2
	VPADDQ 192(SI), Z3, Z3
	VPADDQ 256(SI), Z4, Z4
	VPADDQ 320(SI), Z5, Z5
	VPADDQ 384(SI), Z6, Z6
	VPADDQ 448(SI), Z7, Z7
	CARRIES(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z28)
	STORE(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// func SubReduce(z, x, y *Vec)
TEXT ·SubReduce(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), BX
	MOVQ y+16(FP), SI
	VPBROADCASTQ ·mask(SB), Z26
	LOAD(BX, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	SUBTRACT(SI)
	REDUCE
	STORE(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// func SubBothReduce(z, x, y1, y2 *Vec)
TEXT ·SubBothReduce(SB), NOSPLIT, $0-32
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), BX
	MOVQ y1+16(FP), SI
	MOVQ y2+24(FP), DX
	VPBROADCASTQ ·mask(SB), Z26
	LOAD(BX, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	SUBTRACT(SI)
	SUBTRACT(DX)
	REDUCE
	STORE(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// ADDRESSES sets AX, BX, CX, DX, R8..R11 to base + 48*index.
#define ADDRESS(base, index, lane, r) \
	MOVL (4*lane)(index), r \
	LEAQ (r)(r*2), r        \
	SHLQ $4, r              \
	ADDQ base, r

#define ADDRESSES(base, index) \
	ADDRESS(base, index, 0, AX)  \
	ADDRESS(base, index, 1, BX)  \
	ADDRESS(base, index, 2, CX)  \
	ADDRESS(base, index, 3, DX)  \
	ADDRESS(base, index, 4, R8)  \
	ADDRESS(base, index, 5, R9)  \
	ADDRESS(base, index, 6, R10) \
	ADDRESS(base, index, 7, R11)

// GATHER sets the vectors w0 and w1 to two words of each element, at the given
// offset from the addresses. K1..K3 choose the second to fourth 128 bits; Z30
// and Z31 are overwritten.
#define GATHER(offset, w0, w1) \
	VMOVDQU64       (offset)(AX), X30       \
	VMOVDQU64       (offset)(BX), X31       \
	VBROADCASTI64X2 (offset)(CX), K1, Z30   \
	VBROADCASTI64X2 (offset)(DX), K1, Z31   \
	VBROADCASTI64X2 (offset)(R8), K2, Z30   \
	VBROADCASTI64X2 (offset)(R9), K2, Z31   \
	VBROADCASTI64X2 (offset)(R10), K3, Z30  \
	VBROADCASTI64X2 (offset)(R11), K3, Z31  \
	VPUNPCKLQDQ     Z31, Z30, w0            \
	VPUNPCKHQDQ     Z31, Z30, w1

// SCATTER is the opposite of GATHER.
#define SCATTER(offset, w0, w1) \
	VPUNPCKLQDQ   w1, w0, Z30              \
	VPUNPCKHQDQ   w1, w0, Z31              \
	VMOVDQU64     X30, (offset)(AX)        \
	VMOVDQU64     X31, (offset)(BX)        \
	VEXTRACTI64X2 $1, Z30, (offset)(CX)    \
	VEXTRACTI64X2 $1, Z31, (offset)(DX)    \
	VEXTRACTI64X2 $2, Z30, (offset)(R8)    \
	VEXTRACTI64X2 $2, Z31, (offset)(R9)    \
	VEXTRACTI64X2 $3, Z30, (offset)(R10)   \
	VEXTRACTI64X2 $3, Z31, (offset)(R11)

// func Load(z *Vec, elements *fp.Element, index *[8]uint32)
TEXT ·Load(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ elements+8(FP), R12
	MOVQ index+16(FP), SI
	VPBROADCASTQ ·mask(SB), Z26
	ADDRESSES(R12, SI)
	MOVL  $0x0c, R13
	KMOVB R13, K1
	MOVL  $0x30, R13
	KMOVB R13, K2
	MOVL  $0xc0, R13
	KMOVB R13, K3
	GATHER(0, Z8, Z9)
	GATHER(16, Z10, Z11)
	GATHER(32, Z12, Z13)
	VPANDQ  Z26, Z8, Z0
	VPSHRDQ $52, Z9, Z8, Z1
	VPANDQ  Z26, Z1, Z1
	VPSHRDQ $40, Z10, Z9, Z2
	VPANDQ  Z26, Z2, Z2
	VPSHRDQ $28, Z11, Z10, Z3
	VPANDQ  Z26, Z3, Z3
	VPSHRDQ $16, Z12, Z11, Z4
	VPANDQ  Z26, Z4, Z4
	VPSRLQ  $4, Z12, Z5
	VPANDQ  Z26, Z5, Z5
	VPSHRDQ $56, Z13, Z12, Z6
	VPANDQ  Z26, Z6, Z6
	VPSRLQ  $44, Z13, Z7
	STORE(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// func Store(elements *fp.Element, index *[8]uint32, x *Vec)
TEXT ·Store(SB), NOSPLIT, $0-24
	MOVQ elements+0(FP), R12
	MOVQ index+8(FP), SI
	MOVQ x+16(FP), DI
	LOAD(DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	ADDRESSES(R12, SI)
	PACK(Z0, 0, Z1, 52, Z8)
	PACK(Z1, 12, Z2, 40, Z9)
	SCATTER(0, Z8, Z9)
	PACK(Z2, 24, Z3, 28, Z10)
	PACK(Z3, 36, Z4, 16, Z11)
	SCATTER(16, Z10, Z11)
	PACK(Z4, 48, Z5, 4, Z12)
	VPSLLQ $56, Z6, Z13
	VPORQ  Z13, Z12, Z12
	PACK(Z6, 8, Z7, 44, Z13)
	SCATTER(32, Z12, Z13)
	VZEROUPPER
	RET
