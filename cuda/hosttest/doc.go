// Package hosttest checks the CUDA library's field and curve layers against gnark-crypto, on any
// machine with a C++ compiler: the layers' headers compile for the host too, and the program
// vectors/vectors.cpp applies their operations to records that the test sends. It knows nothing of the
// layers above (NTT, multi-exponentiation), which need a device; cuda/bench checks those.
package hosttest
