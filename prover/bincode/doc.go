// Package bincode reads the serialisation in which vanilla proofs arrive: that of Rust's
// bincode crate with its default options, as far as the proofs use it. Integers are little
// endian and of fixed width, lists are a 64-bit count and their items, an enum is a 32-bit
// variant number and its fields, structs are their fields in order.
//
// A Reader takes nothing on trust: a proof's form follows from its kind and sector size, so
// every count is compared with the one expected before anything is allocated, and every
// field element must be below the modulus. It knows nothing of what the fields mean.
package bincode
