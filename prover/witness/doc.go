// Package witness holds the values of all variables of one partition's
// circuit in a compact form, and the Writer that fills it.
//
// A Filecoin witness is mostly bits: as 32-byte field elements the 130 million
// variables of a 32 GiB PoRep partition take 4.2 GB, as bits where they are
// bits a small fraction. Which variable is a bit is a property of the circuit,
// not of the witness, and is recorded once in a Layout; a Witness then keeps one
// bit for each bit variable and one field element for each of the others.
//
// The package knows nothing of constraints, circuits or proving.
package witness
