// Package fp8 multiplies, adds and subtracts eight elements of BLS12-381's base
// field at a time, one in each lane of a 512-bit register, on processors that
// multiply integers of 52 bits in vectors (AVX-512 IFMA, VBMI2). A
// multiplication takes 10 to 13 ns an element on Zen 4 where gnark-crypto's
// takes 33. It has 256 multiply-and-add instructions, of which that processor
// does one a cycle, so that the limit is 32 cycles an element.
//
// Elements are in gnark-crypto's form, that of Montgomery with 2^384, but in
// eight limbs of 52 bits. Products of eight limbs are reduced by 2^416; one
// factor is therefore shifted 32 bits to the left as it is read, which its eight
// limbs have room for.
//
// Results are not fully reduced, unless a function says so: each states how
// large its result is, and how large its operands may be. 2^384 is above 9.8 p.
// A result may be one of the operands.
//
// Vectors are best made by the slice, whose memory is aligned. The package knows
// neither curves nor what is done with its results. It is empty on other
// architectures than amd64, and its functions may be called only if Supported.
package fp8
