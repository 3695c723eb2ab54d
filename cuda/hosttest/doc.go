// Package hosttest checks the CUDA library's field and curve layers against gnark-crypto, and its rows
// of constraint systems against package constraint, on any machine with a C++ compiler: the headers
// compile for the host too, and the program vectors/vectors.cpp applies their operations to records
// that the test sends. It knows nothing of what needs a device (NTT, multi-exponentiation);
// cuda/bench checks that.
package hosttest
