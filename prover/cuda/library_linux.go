//go:build linux && amd64

package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/ebitengine/purego"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Load loads the library from path; from the executable's directory or else
// from where the system's loader looks, if path is empty. Errors are of type
// *LibraryError. The library stays loaded.
func Load(path string) (*Library, error) {
	if path != "" {
		return load(path)
	}
	executable, err := os.Executable()
	if err != nil {
		return load(libraryName)
	}
	beside := filepath.Join(filepath.Dir(executable), libraryName)
	if _, err := os.Stat(beside); !errors.Is(err, fs.ErrNotExist) {
		return load(beside)
	}
	l, err := load(libraryName)
	var e *LibraryError
	if errors.As(err, &e) && e.Problem == LibraryMissing {
		e.Reason = fmt.Sprintf("neither beside the executable, as %s, nor where the loader looks: %v", beside, e.Err)
	}
	return l, err
}

func load(path string) (*Library, error) {
	runtime.LockOSThread() // dlerror is of the thread
	defer runtime.UnlockOSThread()
	so, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, &LibraryError{
			Problem: LibraryMissing, Path: path, Reason: "it cannot be loaded: " + err.Error(),
			Remedy: "install it with the program, build it with make cuda, or name it in the configuration", Err: err,
		}
	}
	l := &loaded{}
	const another = "install the library that belongs to this program"
	var version func() int32
	if err := register(so, "interlock_version", &version); err != nil {
		return nil, &LibraryError{Problem: LibraryOtherVersion, Path: path, Reason: "it is another library: " + err.Error(), Remedy: another, Err: err}
	}
	if v := version(); v != Version {
		return nil, &LibraryError{
			Problem: LibraryOtherVersion, Path: path,
			Reason: fmt.Sprintf("its version is %d, this program wants %d", v, Version), Remedy: another,
		}
	}
	for call, name := range l.calls() {
		if err := register(so, name, call); err != nil {
			return nil, &LibraryError{Problem: LibraryOtherVersion, Path: path, Reason: "it is incomplete: " + err.Error(), Remedy: another, Err: err}
		}
	}
	if _, err := l.countDevices(); err != nil {
		problem := &LibraryError{Problem: DriverMissing, Path: path, Reason: err.Error(), Err: err,
			Remedy: "install NVIDIA's driver, of a version that serves CUDA 13.0 or later (nvidia-smi prints it)"}
		return nil, problem
	}
	return &Library{path: path, api: l}, nil
}

// register finds a function of the library.
func register(so uintptr, name string, function any) error {
	symbol, err := purego.Dlsym(so, name)
	if err != nil {
		return err
	}
	purego.RegisterFunc(function, symbol)
	return nil
}

// loaded is the api of the loaded library. Fields have the types of the
// functions in interlock_cuda.h; a handle is a pointer to one of its objects.
type loaded struct {
	count    func(count *int32, e *cError) int32
	describe func(index int32, info *cInfo, e *cError) int32
	freeOf   func(index int32, free *uint64, e *cError) int32

	deviceOpen  func(index int32, memory, scratch uint64, device *handle, e *cError) int32
	deviceClose func(device handle)
	memoryOf    func(device handle, used, peak *uint64, e *cError) int32

	contextCreate  func(device handle, context *handle, e *cError) int32
	contextDestroy func(context handle)
	milliseconds   func(context handle) float64
	deviceAlloc    func(context handle, bytes uint64, memory *handle, e *cError) int32
	deviceFree     func(context, memory handle, e *cError) int32
	hostAlloc      func(context handle, bytes uint64, memory *unsafe.Pointer, e *cError) int32
	hostFree       func(context handle, memory unsafe.Pointer, e *cError) int32
	copyTo         func(context, to handle, from unsafe.Pointer, bytes uint64, e *cError) int32
	copyFrom       func(context handle, to unsafe.Pointer, from handle, bytes uint64, e *cError) int32
	ntt            func(context, values handle, logSize, inverse, coset int32, e *cError) int32
	multiples      func(context handle, group int32, scalars unsafe.Pointer, count uint64, points unsafe.Pointer, e *cError) int32

	basesCreate  func(context handle, group int32, capacity uint64, multiples int32, bases *handle, e *cError) int32
	basesLoad    func(context, bases handle, at, count uint64, points unsafe.Pointer, encoded int32, e *cError) int32
	basesDestroy func(bases handle)
	msm          func(context, bases handle, scalars unsafe.Pointer, count uint64, montgomery int32, result unsafe.Pointer, e *cError) int32

	circuitCreate  func(context handle, system *cSystem, circuit *handle, e *cError) int32
	circuitDestroy func(circuit handle)
	bytesOfCircuit func(circuit handle) uint64

	witnessCreate  func(context, circuit handle, onDevice *handle, e *cError) int32
	witnessLoad    func(context, onDevice handle, part int32, at, count uint64, values unsafe.Pointer, e *cError) int32
	witnessDestroy func(onDevice handle)

	quotientCreate   func(context, circuit, onDevice handle, quotient *handle, e *cError) int32
	quotientMultiply func(context, quotient handle, e *cError) int32
	quotientC        func(context, quotient, circuit, onDevice handle, e *cError) int32
	quotientFinish   func(context, quotient handle, e *cError) int32
	quotientDestroy  func(quotient handle)

	quotientSum func(context, quotient handle, from uint64, bases handle, count uint64, result unsafe.Pointer, e *cError) int32
	querySum    func(context, circuit, onDevice handle, query int32, from uint64, bases handle, count uint64, result unsafe.Pointer, e *cError) int32
}

// calls lists where the library's functions go, with their names. interlock_copy
// has two types, one for each direction.
func (l *loaded) calls() map[any]string {
	return map[any]string{
		&l.count:            "interlock_count_devices",
		&l.describe:         "interlock_describe_device",
		&l.freeOf:           "interlock_free_memory",
		&l.deviceOpen:       "interlock_device_open",
		&l.deviceClose:      "interlock_device_close",
		&l.memoryOf:         "interlock_device_memory",
		&l.contextCreate:    "interlock_context_create",
		&l.contextDestroy:   "interlock_context_destroy",
		&l.milliseconds:     "interlock_kernel_milliseconds",
		&l.deviceAlloc:      "interlock_device_alloc",
		&l.deviceFree:       "interlock_device_free",
		&l.hostAlloc:        "interlock_host_alloc",
		&l.hostFree:         "interlock_host_free",
		&l.copyTo:           "interlock_copy",
		&l.copyFrom:         "interlock_copy",
		&l.ntt:              "interlock_ntt",
		&l.multiples:        "interlock_generator_multiples",
		&l.basesCreate:      "interlock_bases_create",
		&l.basesLoad:        "interlock_bases_load",
		&l.basesDestroy:     "interlock_bases_destroy",
		&l.msm:              "interlock_msm",
		&l.circuitCreate:    "interlock_circuit_create",
		&l.circuitDestroy:   "interlock_circuit_destroy",
		&l.bytesOfCircuit:   "interlock_circuit_bytes",
		&l.witnessCreate:    "interlock_witness_create",
		&l.witnessLoad:      "interlock_witness_load",
		&l.witnessDestroy:   "interlock_witness_destroy",
		&l.quotientCreate:   "interlock_quotient_create",
		&l.quotientMultiply: "interlock_quotient_multiply",
		&l.quotientC:        "interlock_quotient_evaluate_c",
		&l.quotientFinish:   "interlock_quotient_finish",
		&l.quotientDestroy:  "interlock_quotient_destroy",
		&l.quotientSum:      "interlock_sum_quotient",
		&l.querySum:         "interlock_sum_query",
	}
}

// cError, cInfo and cSystem are the structs of interlock_cuda.h.
type cError struct {
	_, cudaCode           int32 // the kind is what the call returns
	bytesAsked, bytesFree uint64
	message               [256]byte
}

type cInfo struct {
	name              [256]byte
	uuid              [48]byte
	pciAddress        [16]byte
	memory            uint64
	major, minor      int32
	processors        int32
	driverCUDAVersion int32
}

type cSystem struct {
	constraints, inputs, aux, full                                       uint64
	logDomain                                                            int32
	templateCount                                                        uint32
	instanceCount, portCount, rowCount, termCount, coefficientCount      uint64
	templates, instances, ports, rowPlaces, rowEnds, terms, coefficients unsafe.Pointer
	isBit, denseA, denseB, denseBInputs                                  unsafe.Pointer
}

// The package's structs that are passed as they are have C's sizes.
var (
	_ [280]byte = [unsafe.Sizeof(cError{})]byte{}
	_ [344]byte = [unsafe.Sizeof(cInfo{})]byte{}
	_ [168]byte = [unsafe.Sizeof(cSystem{})]byte{}
	_ [8]byte   = [unsafe.Sizeof(constraint.FlatTerm{})]byte{}
	_ [24]byte  = [unsafe.Sizeof(constraint.FlatTemplate{})]byte{}
	_ [16]byte  = [unsafe.Sizeof(constraint.FlatInstance{})]byte{}
	_ [32]byte  = [unsafe.Sizeof(fr.Element{})]byte{}
	_ [96]byte  = [unsafe.Sizeof(bls12381.G1Affine{})]byte{}
	_ [192]byte = [unsafe.Sizeof(bls12381.G2Affine{})]byte{}
)

// text is what a C string in a buffer says.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// do makes a call and turns its failure into an *Error.
func do(call func(e *cError) int32) error {
	e := new(cError)
	kind := call(e)
	if kind == 0 {
		return nil
	}
	return &Error{
		Kind: Kind(kind), CUDACode: int(e.cudaCode), Message: text(e.message[:]),
		BytesAsked: int64(e.bytesAsked), BytesFree: int64(e.bytesFree),
	}
}

// made makes a call that makes an object.
func made(call func(object *handle, e *cError) int32) (handle, error) {
	object := new(handle)
	err := do(func(e *cError) int32 { return call(object, e) })
	return *object, err
}

// first is where a slice begins. The memory stays where it is, and alive, for the
// time of the call that it is passed to.
func first[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

func (l *loaded) countDevices() (int, error) {
	n := new(int32)
	err := do(func(e *cError) int32 { return l.count(n, e) })
	return int(*n), err
}

func (l *loaded) describeDevice(index int) (Info, error) {
	c := new(cInfo)
	if err := do(func(e *cError) int32 { return l.describe(int32(index), c, e) }); err != nil {
		return Info{}, err
	}
	return Info{
		Index: index, Name: text(c.name[:]), UUID: text(c.uuid[:]), PCIAddress: text(c.pciAddress[:]),
		MemoryBytes: int64(c.memory), Major: int(c.major), Minor: int(c.minor),
		Processors: int(c.processors), DriverCUDA: int(c.driverCUDAVersion),
	}, nil
}

func (l *loaded) freeMemory(index int) (int64, error) {
	free := new(uint64)
	err := do(func(e *cError) int32 { return l.freeOf(int32(index), free, e) })
	return int64(*free), err
}

func (l *loaded) openDevice(index int, memoryBytes, scratchBytes int64) (handle, error) {
	return made(func(object *handle, e *cError) int32 {
		return l.deviceOpen(int32(index), uint64(memoryBytes), uint64(scratchBytes), object, e)
	})
}

func (l *loaded) closeDevice(device handle) { l.deviceClose(device) }

func (l *loaded) deviceMemory(device handle) (usedBytes, peakBytes int64, err error) {
	v := new([2]uint64)
	err = do(func(e *cError) int32 { return l.memoryOf(device, &v[0], &v[1], e) })
	return int64(v[0]), int64(v[1]), err
}

func (l *loaded) createContext(device handle) (handle, error) {
	return made(func(object *handle, e *cError) int32 { return l.contextCreate(device, object, e) })
}

func (l *loaded) destroyContext(context handle) { l.contextDestroy(context) }

func (l *loaded) kernelTime(context handle) time.Duration {
	return time.Duration(l.milliseconds(context) * float64(time.Millisecond))
}

func (l *loaded) allocHost(context handle, bytes int) ([]byte, error) {
	memory := new(unsafe.Pointer)
	if err := do(func(e *cError) int32 { return l.hostAlloc(context, uint64(bytes), memory, e) }); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(*memory), bytes), nil
}

func (l *loaded) freeHost(context handle, memory []byte) error {
	return do(func(e *cError) int32 { return l.hostFree(context, first(memory), e) })
}

func (l *loaded) transform(context handle, values []fr.Element) error {
	bytes := uint64(len(values) * fr.Bytes)
	onDevice, err := made(func(object *handle, e *cError) int32 { return l.deviceAlloc(context, bytes, object, e) })
	if err != nil {
		return err
	}
	steps := []func(e *cError) int32{
		func(e *cError) int32 { return l.copyTo(context, onDevice, first(values), bytes, e) },
		func(e *cError) int32 { return l.ntt(context, onDevice, int32(logSize(len(values))), 0, 0, e) },
		func(e *cError) int32 { return l.copyFrom(context, first(values), onDevice, bytes, e) },
	}
	for _, step := range steps {
		if err = do(step); err != nil {
			break
		}
	}
	return errors.Join(err, do(func(e *cError) int32 { return l.deviceFree(context, onDevice, e) }))
}

func (l *loaded) multiplyGenerator(context handle, g group, scalars []fr.Element, encoded []byte) error {
	return do(func(e *cError) int32 {
		return l.multiples(context, int32(g), first(scalars), uint64(len(scalars)), first(encoded), e)
	})
}

func (l *loaded) createBases(context handle, g group, capacity, multiples int) (handle, error) {
	return made(func(object *handle, e *cError) int32 {
		return l.basesCreate(context, int32(g), uint64(capacity), int32(multiples), object, e)
	})
}

func (l *loaded) loadBases(context, bases handle, at, count int, encoded []byte) error {
	return do(func(e *cError) int32 {
		return l.basesLoad(context, bases, uint64(at), uint64(count), first(encoded), 1, e)
	})
}

func (l *loaded) destroyBases(bases handle) { l.basesDestroy(bases) }

func (l *loaded) sum(context, bases handle, scalars []fr.Element) (bls12381.G1Affine, error) {
	result := new(bls12381.G1Affine)
	err := do(func(e *cError) int32 {
		return l.msm(context, bases, first(scalars), uint64(len(scalars)), 1, unsafe.Pointer(result), e)
	})
	return *result, err
}

func (l *loaded) createCircuit(context handle, f *constraint.Flat, domain int) (handle, error) {
	s := &cSystem{
		constraints: uint64(f.Constraints), inputs: uint64(f.Inputs), aux: uint64(f.Aux), full: uint64(f.Full),
		logDomain:     int32(logSize(domain)),
		templateCount: uint32(len(f.Templates)), instanceCount: uint64(len(f.Instances)), portCount: uint64(len(f.Ports)),
		rowCount: uint64(len(f.RowPlaces)), termCount: uint64(len(f.Terms)), coefficientCount: uint64(len(f.Coefficients)),
		templates: first(f.Templates), instances: first(f.Instances), ports: first(f.Ports),
		rowPlaces: first(f.RowPlaces), rowEnds: first(f.RowEnds), terms: first(f.Terms), coefficients: first(f.Coefficients),
		isBit: first(f.IsBit), denseA: first(f.DenseA), denseB: first(f.DenseB), denseBInputs: first(f.DenseBInputs),
	}
	// C sees pointers within the struct, too.
	var pins runtime.Pinner
	defer pins.Unpin()
	for _, p := range [...]unsafe.Pointer{
		unsafe.Pointer(s), s.templates, s.instances, s.ports, s.rowPlaces, s.rowEnds, s.terms, s.coefficients,
		s.isBit, s.denseA, s.denseB, s.denseBInputs,
	} {
		if p != nil {
			pins.Pin(p)
		}
	}
	return made(func(object *handle, e *cError) int32 { return l.circuitCreate(context, s, object, e) })
}

func (l *loaded) destroyCircuit(circuit handle) { l.circuitDestroy(circuit) }

func (l *loaded) circuitBytes(circuit handle) int64 { return int64(l.bytesOfCircuit(circuit)) }

func (l *loaded) createWitness(context, circuit handle) (handle, error) {
	return made(func(object *handle, e *cError) int32 { return l.witnessCreate(context, circuit, object, e) })
}

func (l *loaded) loadWitness(context, onDevice handle, w *witness.Witness, part witnessPart, from, to int) error {
	var values unsafe.Pointer
	switch part {
	case partInputs:
		values = first(w.Inputs[from:to])
	case partBits:
		values = first(w.Bits[from:to])
	case partFull:
		values = first(w.Full[from:to])
	}
	return do(func(e *cError) int32 {
		return l.witnessLoad(context, onDevice, int32(part), uint64(from), uint64(to-from), values, e)
	})
}

func (l *loaded) destroyWitness(onDevice handle) { l.witnessDestroy(onDevice) }

func (l *loaded) createQuotient(context, circuit, onDevice handle) (handle, error) {
	return made(func(object *handle, e *cError) int32 { return l.quotientCreate(context, circuit, onDevice, object, e) })
}

func (l *loaded) multiplyQuotient(context, quotient handle) error {
	return do(func(e *cError) int32 { return l.quotientMultiply(context, quotient, e) })
}

func (l *loaded) evaluateC(context, quotient, circuit, onDevice handle) error {
	return do(func(e *cError) int32 { return l.quotientC(context, quotient, circuit, onDevice, e) })
}

func (l *loaded) finishQuotient(context, quotient handle) error {
	return do(func(e *cError) int32 { return l.quotientFinish(context, quotient, e) })
}

func (l *loaded) destroyQuotient(quotient handle) { l.quotientDestroy(quotient) }

func (l *loaded) sumQuotient(context, quotient handle, from int, bases handle, count int) (bls12381.G1Affine, error) {
	result := new(bls12381.G1Affine)
	err := do(func(e *cError) int32 {
		return l.quotientSum(context, quotient, uint64(from), bases, uint64(count), unsafe.Pointer(result), e)
	})
	return *result, err
}

func (l *loaded) sumG1(context, circuit, onDevice handle, q groth16.Query, from int, bases handle, count int) (bls12381.G1Affine, error) {
	result := new(bls12381.G1Affine)
	err := l.sumQuery(context, circuit, onDevice, q, from, bases, count, unsafe.Pointer(result))
	return *result, err
}

func (l *loaded) sumG2(context, circuit, onDevice handle, q groth16.Query, from int, bases handle, count int) (bls12381.G2Affine, error) {
	result := new(bls12381.G2Affine)
	err := l.sumQuery(context, circuit, onDevice, q, from, bases, count, unsafe.Pointer(result))
	return *result, err
}

// sumQuery sums; groth16 numbers the queries as the library does.
func (l *loaded) sumQuery(context, circuit, onDevice handle, q groth16.Query, from int, bases handle, count int, result unsafe.Pointer) error {
	return do(func(e *cError) int32 {
		return l.querySum(context, circuit, onDevice, int32(q), uint64(from), bases, uint64(count), result, e)
	})
}
