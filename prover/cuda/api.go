package cuda

import (
	"time"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/witness"
)

// handle is an object of the library. Zero is none.
type handle uintptr

// api is what the package asks of the library: the calls of interlock_cuda.h
// that it uses, one method each unless noted, with the same rules. Errors are
// of type *Error, with neither device nor doing.
type api interface {
	countDevices() (int, error)
	describeDevice(index int) (Info, error)
	freeMemory(index int) (bytes int64, err error)

	openDevice(index int, memoryBytes, scratchBytes int64) (handle, error)
	closeDevice(device handle)
	deviceMemory(device handle) (usedBytes, peakBytes int64, err error)

	createContext(device handle) (handle, error)
	destroyContext(context handle)
	// kernelTime is interlock_kernel_milliseconds.
	kernelTime(context handle) time.Duration
	allocHost(context handle, bytes int) ([]byte, error)
	freeHost(context handle, memory []byte) error

	// transform is interlock_ntt, forward on the subgroup, of values in host
	// memory, with the copies there and back.
	transform(context handle, values []fr.Element) error
	multiplyGenerator(context handle, g group, scalars []fr.Element, encoded []byte) error

	createBases(context handle, g group, capacity, multiples int) (handle, error)
	// loadBases loads encoded points.
	loadBases(context, bases handle, at, count int, encoded []byte) error
	destroyBases(bases handle)
	// sum is interlock_msm in G1.
	sum(context, bases handle, scalars []fr.Element) (bls12381.G1Affine, error)

	createCircuit(context handle, f *constraint.Flat, domain int) (handle, error)
	destroyCircuit(circuit handle)
	circuitBytes(circuit handle) int64

	createWitness(context, circuit handle) (handle, error)
	// loadWitness loads elements [from, to) of a part of w.
	loadWitness(context, onDevice handle, w *witness.Witness, part witnessPart, from, to int) error
	destroyWitness(onDevice handle)

	// The four steps of a quotient: evaluateC is interlock_quotient_evaluate_c.
	createQuotient(context, circuit, onDevice handle) (handle, error)
	multiplyQuotient(context, quotient handle) error
	evaluateC(context, quotient, circuit, onDevice handle) error
	finishQuotient(context, quotient handle) error
	destroyQuotient(quotient handle)

	sumQuotient(context, quotient handle, from int, bases handle, count int) (bls12381.G1Affine, error)
	// sumG1 and sumG2 are interlock_sum_query.
	sumG1(context, circuit, onDevice handle, q groth16.Query, from int, bases handle, count int) (bls12381.G1Affine, error)
	sumG2(context, circuit, onDevice handle, q groth16.Query, from int, bases handle, count int) (bls12381.G2Affine, error)
}

// group is one of the two groups of points.
type group int32

const (
	groupG1 group = 1
	groupG2 group = 2
)

// groupOf is the group of a query's points.
func groupOf(q groth16.Query) group {
	if q == groth16.QueryBG2 {
		return groupG2
	}
	return groupG1
}

// pointBytes is the size of a point, encoded as well as on the device.
func (g group) pointBytes() int {
	if g == groupG2 {
		return bls12381.SizeOfG2AffineUncompressed
	}
	return bls12381.SizeOfG1AffineUncompressed
}

// witnessPart is one of the three lists of a witness.
type witnessPart int32

const (
	partInputs witnessPart = 0
	partBits   witnessPart = 1 // in words of 64
	partFull   witnessPart = 2
)

// length is how many elements, or words, a part of w has.
func (p witnessPart) length(w *witness.Witness) int {
	switch p {
	case partInputs:
		return len(w.Inputs)
	case partBits:
		return len(w.Bits)
	}
	return len(w.Full)
}

// elementBytes is the size of one of them.
func (p witnessPart) elementBytes() int {
	if p == partBits {
		return 8
	}
	return fr.Bytes
}
