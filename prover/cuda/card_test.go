package cuda

import (
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/consensys/gnark-crypto/utils"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/witness"
)

// card is a simulated card: the library's rules, computed with gnark-crypto. It
// counts its memory and its objects, panics when it is used against the rules,
// and fails or blocks where a test says so.
type card struct {
	// before is asked before each call that can fail: what is returned is its
	// failure. It may block.
	before func(call string) *Error
	wrong  bool // sums are wrong

	mu                   sync.Mutex
	capacity, used, peak int64
	scratch              int64 // that sums take
	last                 handle
	objects              map[handle]any
	busy                 map[handle]bool // contexts
	pinned               map[*byte]bool  // host memory, by its first byte
}

func newCard(capacity int64) *card {
	return &card{capacity: capacity, objects: map[handle]any{}, busy: map[handle]bool{}, pinned: map[*byte]bool{}}
}

// simBases and the like are the objects; sized says what they take.
type (
	simDevice  struct{}
	simContext struct{}
	simScratch struct{}
	simBases   struct {
		group    group
		capacity int
		g1       []bls12381.G1Affine
		g2       []bls12381.G2Affine
		bytes    int64
	}
	simCircuit struct {
		flat   *constraint.Flat
		domain int
		bytes  int64
	}
	simWitness struct {
		w     witness.Witness
		bytes int64
	}
	simQuotient struct {
		domain int
		values [3][]fr.Element // of A, B and C on the domain; then A's is H
		step   quotientStep
		bytes  int64
	}
)

// quotientStep is what was done last to a quotient.
type quotientStep int

const (
	failedHalfway quotientStep = iota // nothing but destroying it is left
	createdAB
	multipliedAB
	evaluatedC
	finished
)

// call begins a call through a context, 0 if it needs none, and returns what ends
// it.
func (c *card) call(name string, context handle) (func(), error) {
	if context != 0 {
		c.mu.Lock()
		get[simContext](c, context)
		if c.busy[context] {
			panic(name + ": a context for one thread is used by two")
		}
		c.busy[context] = true
		c.mu.Unlock()
	}
	end := func() {
		if context != 0 {
			c.mu.Lock()
			c.busy[context] = false
			c.mu.Unlock()
		}
	}
	if c.before != nil {
		if err := c.before(name); err != nil {
			end()
			return nil, err
		}
	}
	return end, nil
}

// get finds an object, under mu.
func get[T any](c *card, h handle) T {
	o, ok := c.objects[h].(T)
	if !ok {
		panic(fmt.Sprintf("object %d is %T, not %T", h, c.objects[h], o))
	}
	return o
}

func object[T any](c *card, h handle) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return get[T](c, h)
}

// add makes an object that takes so many bytes.
func (c *card) add(o any, bytes int64) (handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used+bytes > c.capacity {
		return 0, &Error{Kind: OutOfMemory, BytesAsked: bytes, BytesFree: c.capacity - c.used}
	}
	c.used += bytes
	c.peak = max(c.peak, c.used)
	c.last++
	c.objects[c.last] = o
	return c.last, nil
}

func remove[T any](c *card, h handle, bytes func(o T) int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used -= bytes(get[T](c, h))
	delete(c.objects, h)
}

// count is how many objects there are but the device and its contexts.
func (c *card) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, o := range c.objects {
		switch o.(type) {
		case simDevice, simContext:
		default:
			n++
		}
	}
	return n
}

func (c *card) countDevices() (int, error) { return 1, nil }

func (c *card) describeDevice(index int) (Info, error) {
	if index != 0 {
		return Info{}, &Error{Kind: NoDevice}
	}
	return Info{Name: "simulated", MemoryBytes: c.capacity}, nil
}

func (c *card) freeMemory(int) (int64, error) {
	end, err := c.call("freeMemory", 0)
	if err != nil {
		return 0, err
	}
	defer end()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.capacity - c.used, nil
}

func (c *card) openDevice(_ int, _, scratchBytes int64) (handle, error) {
	end, err := c.call("openDevice", 0)
	if err != nil {
		return 0, err
	}
	defer end()
	c.scratch = scratchBytes
	return c.add(simDevice{}, 0)
}

func (c *card) closeDevice(h handle) { remove(c, h, func(simDevice) int64 { return 0 }) }

func (c *card) deviceMemory(handle) (int64, int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, c.peak, nil
}

func (c *card) createContext(handle) (handle, error) {
	end, err := c.call("createContext", 0)
	if err != nil {
		return 0, err
	}
	defer end()
	return c.add(simContext{}, 0)
}

func (c *card) destroyContext(h handle) { remove(c, h, func(simContext) int64 { return 0 }) }

func (c *card) kernelTime(handle) time.Duration { return time.Microsecond }

func (c *card) allocHost(h handle, bytes int) ([]byte, error) {
	end, err := c.call("allocHost", h)
	if err != nil {
		return nil, err
	}
	defer end()
	b := make([]byte, bytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned[&b[0]] = true
	return b, nil
}

func (c *card) freeHost(h handle, memory []byte) error {
	end, err := c.call("freeHost", h)
	if err != nil {
		return err
	}
	defer end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.pinned[&memory[0]] {
		panic("memory is freed that is not pinned")
	}
	delete(c.pinned, &memory[0])
	return nil
}

func (c *card) transform(h handle, values []fr.Element) error {
	end, err := c.call("transform", h)
	if err != nil {
		return err
	}
	defer end()
	// By the definition: values of the polynomial at powers of the root.
	root, err := fr.Generator(uint64(len(values)))
	if err != nil {
		return err
	}
	coefficients := append([]fr.Element(nil), values...)
	at := fr.One()
	for i := range values {
		var y fr.Element
		for k := len(coefficients) - 1; k >= 0; k-- {
			y.Mul(&y, &at)
			y.Add(&y, &coefficients[k])
		}
		values[i] = y
		at.Mul(&at, &root)
	}
	return nil
}

func (c *card) multiplyGenerator(h handle, g group, scalars []fr.Element, encoded []byte) error {
	end, err := c.call("multiplyGenerator", h)
	if err != nil {
		return err
	}
	defer end()
	_, _, g1, g2 := bls12381.Generators()
	for i := range scalars {
		k := scalars[i].BigInt(new(big.Int))
		if g == groupG1 {
			b := new(bls12381.G1Affine).ScalarMultiplication(&g1, k).RawBytes()
			copy(encoded[i*len(b):], b[:])
		} else {
			b := new(bls12381.G2Affine).ScalarMultiplication(&g2, k).RawBytes()
			copy(encoded[i*len(b):], b[:])
		}
	}
	return nil
}

func (c *card) createBases(h handle, g group, capacity, multiples int) (handle, error) {
	end, err := c.call("createBases", h)
	if err != nil {
		return 0, err
	}
	defer end()
	b := &simBases{group: g, capacity: capacity, bytes: int64(capacity*multiples) * int64(g.pointBytes())}
	if g == groupG1 {
		b.g1 = make([]bls12381.G1Affine, capacity)
	} else {
		b.g2 = make([]bls12381.G2Affine, capacity)
	}
	return c.add(b, b.bytes)
}

func coordinate(b []byte) (x fp.Element) {
	x.SetBytes(b[:fp.Bytes])
	return x
}

func (c *card) loadBases(h, bases handle, at, count int, encoded []byte) error {
	end, err := c.call("loadBases", h)
	if err != nil {
		return err
	}
	defer end()
	b := object[*simBases](c, bases)
	if at+count > b.capacity || len(encoded) != count*b.group.pointBytes() {
		return &Error{Kind: BadArgument, Message: "points out of range"}
	}
	for i := range count {
		p := encoded[i*b.group.pointBytes():]
		if b.group == groupG1 {
			b.g1[at+i] = bls12381.G1Affine{X: coordinate(p), Y: coordinate(p[48:])}
			continue
		}
		q := &b.g2[at+i]
		q.X.A1, q.X.A0 = coordinate(p), coordinate(p[48:])
		q.Y.A1, q.Y.A0 = coordinate(p[96:]), coordinate(p[144:])
	}
	return nil
}

func (c *card) destroyBases(h handle) {
	remove(c, h, func(b *simBases) int64 { return b.bytes })
}

func (c *card) sum(h, bases handle, scalars []fr.Element) (bls12381.G1Affine, error) {
	end, err := c.call("sum", h)
	if err != nil {
		return bls12381.G1Affine{}, err
	}
	defer end()
	return c.sumOf(object[*simBases](c, bases), scalars)
}

func (c *card) sumOf(b *simBases, scalars []fr.Element) (sum bls12381.G1Affine, err error) {
	if _, err = sum.MultiExp(b.g1[:len(scalars)], scalars, ecc.MultiExpConfig{}); c.wrong {
		sum.Add(&sum, &b.g1[0])
	}
	return sum, err
}

func (c *card) createCircuit(h handle, f *constraint.Flat, domain int) (handle, error) {
	end, err := c.call("createCircuit", h)
	if err != nil {
		return 0, err
	}
	defer end()
	o := &simCircuit{flat: f, domain: domain, bytes: circuitBytes(f)}
	return c.add(o, o.bytes)
}

func (c *card) destroyCircuit(h handle) {
	remove(c, h, func(o *simCircuit) int64 { return o.bytes })
}

func (c *card) circuitBytes(h handle) int64 { return object[*simCircuit](c, h).bytes }

func (c *card) createWitness(h, circuit handle) (handle, error) {
	end, err := c.call("createWitness", h)
	if err != nil {
		return 0, err
	}
	defer end()
	f := object[*simCircuit](c, circuit).flat
	o := &simWitness{w: witness.Witness{
		Inputs: make([]fr.Element, f.Inputs), Bits: make([]uint64, witness.Words(f.Aux)), Full: make([]fr.Element, f.Full),
	}}
	o.bytes = int64(f.Inputs+f.Full)*fr.Bytes + int64(len(o.w.Bits))*8
	return c.add(o, o.bytes)
}

func (c *card) loadWitness(h, onDevice handle, w *witness.Witness, part witnessPart, from, to int) error {
	end, err := c.call("loadWitness", h)
	if err != nil {
		return err
	}
	defer end()
	o := object[*simWitness](c, onDevice)
	switch part {
	case partInputs:
		copy(o.w.Inputs[from:to], w.Inputs[from:to])
	case partBits:
		copy(o.w.Bits[from:to], w.Bits[from:to])
	case partFull:
		copy(o.w.Full[from:to], w.Full[from:to])
	}
	return nil
}

func (c *card) destroyWitness(h handle) {
	remove(c, h, func(o *simWitness) int64 { return o.bytes })
}

func (c *card) createQuotient(h, circuit, onDevice handle) (handle, error) {
	end, err := c.call("createQuotient", h)
	if err != nil {
		return 0, err
	}
	defer end()
	k, w := object[*simCircuit](c, circuit), object[*simWitness](c, onDevice)
	q := &simQuotient{domain: k.domain, bytes: 2 * int64(k.domain) * fr.Bytes, step: createdAB}
	made, err := c.add(q, q.bytes)
	if err == nil {
		q.evaluate(k.flat, &w.w, 0, 1)
	}
	return made, err
}

// evaluate evaluates some of the matrices.
func (q *simQuotient) evaluate(f *constraint.Flat, w *witness.Witness, matrices ...int) {
	all := evaluateFlat(f, w)
	for _, m := range matrices {
		v := append(all[m], make([]fr.Element, q.domain-f.Constraints)...)
		if m == 0 {
			copy(v[f.Constraints:], w.Inputs)
		}
		q.values[m] = v
	}
}

// step takes a step of a quotient, the one after another, while it has so many more domains of memory.
func (c *card) step(call string, context, quotient handle, after quotientStep, domains int64, take func(q *simQuotient)) error {
	q := object[*simQuotient](c, quotient)
	if q.step != after {
		panic(call + ": not the next step of a quotient")
	}
	q.step = failedHalfway
	end, err := c.call(call, context)
	if err != nil {
		return err
	}
	defer end()
	done, err := c.scratchFor(domains * int64(q.domain) * fr.Bytes)
	if err != nil {
		return err
	}
	defer done()
	take(q)
	q.step = after + 1
	return nil
}

// scratchFor takes memory for as long as a call takes.
func (c *card) scratchFor(bytes int64) (done func(), err error) {
	h, err := c.add(simScratch{}, bytes)
	return func() { remove(c, h, func(simScratch) int64 { return bytes }) }, err
}

func (c *card) multiplyQuotient(h, quotient handle) error {
	return c.step("multiplyQuotient", h, quotient, createdAB, 1, func(q *simQuotient) {
		d := fft.NewDomain(uint64(q.domain))
		for _, v := range q.values[:2] {
			d.FFTInverse(v, fft.DIF)
			d.FFT(v, fft.DIT, fft.OnCoset())
		}
		for i := range q.values[0] {
			q.values[0][i].Mul(&q.values[0][i], &q.values[1][i])
		}
		q.values[1] = nil
	})
}

func (c *card) evaluateC(h, quotient, circuit, onDevice handle) error {
	k, w := object[*simCircuit](c, circuit), object[*simWitness](c, onDevice)
	return c.step("evaluateC", h, quotient, multipliedAB, 0, func(q *simQuotient) { q.evaluate(k.flat, &w.w, 2) })
}

// finishQuotient makes it (A·B - C)/Z on the coset by 7, back to coefficients.
func (c *card) finishQuotient(h, quotient handle) error {
	return c.step("finishQuotient", h, quotient, evaluatedC, 1, func(q *simQuotient) {
		d := fft.NewDomain(uint64(q.domain))
		d.FFTInverse(q.values[2], fft.DIF)
		d.FFT(q.values[2], fft.DIT, fft.OnCoset())
		var z fr.Element
		one := fr.One()
		z.Exp(fr.NewElement(7), big.NewInt(int64(q.domain)))
		z.Sub(&z, &one)
		z.Inverse(&z)
		v := q.values[0]
		for i := range v {
			v[i].Sub(&v[i], &q.values[2][i])
			v[i].Mul(&v[i], &z)
		}
		d.FFTInverse(v, fft.DIF, fft.OnCoset())
		utils.BitReverse(v)
		q.values[2] = nil
		c.mu.Lock()
		defer c.mu.Unlock()
		c.used -= q.bytes / 2
		q.bytes /= 2
	})
}

func (c *card) destroyQuotient(h handle) {
	remove(c, h, func(q *simQuotient) int64 { return q.bytes })
}

func (c *card) sumQuotient(h, quotient handle, from int, bases handle, count int) (bls12381.G1Affine, error) {
	end, err := c.call("sumQuotient", h)
	if err != nil {
		return bls12381.G1Affine{}, err
	}
	defer end()
	q := object[*simQuotient](c, quotient)
	if q.step != finished {
		panic("a sum over a quotient that is not finished")
	}
	done, err := c.scratchFor(c.scratch)
	if err != nil {
		return bls12381.G1Affine{}, err
	}
	defer done()
	return c.sumOf(object[*simBases](c, bases), q.values[0][from:from+count])
}

// scalars are those of points [from, from+count) of a query.
func (c *card) scalars(circuit, onDevice handle, q groth16.Query, from, count int) []fr.Element {
	f, w := object[*simCircuit](c, circuit).flat, &object[*simWitness](c, onDevice).w
	has := func(bitmap []uint64, i int) bool { return bitmap[i/64]>>(i%64)&1 == 1 }
	var all []fr.Element
	for i := range f.Inputs {
		if q == groth16.QueryA || (q == groth16.QueryBG1 || q == groth16.QueryBG2) && has(f.DenseBInputs, i) {
			all = append(all, w.Inputs[i])
		}
	}
	full := 0
	for i := range f.Aux {
		var x fr.Element
		if !has(f.IsBit, i) {
			x = w.Full[full]
			full++
		} else if has(w.Bits, i) {
			x.SetOne()
		}
		if q == groth16.QueryL || q == groth16.QueryA && has(f.DenseA, i) ||
			(q == groth16.QueryBG1 || q == groth16.QueryBG2) && has(f.DenseB, i) {
			all = append(all, x)
		}
	}
	return all[from : from+count]
}

// gathered is what of a range of points none of which belongs to a bit is gathered: scalars, places and packed bits.
func gathered(count int) int64 { return 36*int64(count) + int64(count)/8 }

func (c *card) sumG1(h, circuit, onDevice handle, q groth16.Query, from int, bases handle, count int) (bls12381.G1Affine, error) {
	end, err := c.call("sumG1", h)
	if err != nil {
		return bls12381.G1Affine{}, err
	}
	defer end()
	done, err := c.scratchFor(c.scratch + gathered(count))
	if err != nil {
		return bls12381.G1Affine{}, err
	}
	defer done()
	return c.sumOf(object[*simBases](c, bases), c.scalars(circuit, onDevice, q, from, count))
}

func (c *card) sumG2(h, circuit, onDevice handle, q groth16.Query, from int, bases handle, count int) (sum bls12381.G2Affine, err error) {
	end, err := c.call("sumG2", h)
	if err != nil {
		return sum, err
	}
	defer end()
	done, err := c.scratchFor(c.scratch + gathered(count))
	if err != nil {
		return sum, err
	}
	defer done()
	_, err = sum.MultiExp(object[*simBases](c, bases).g2[:count], c.scalars(circuit, onDevice, q, from, count), ecc.MultiExpConfig{})
	return sum, err
}

// evaluateFlat computes A·w, B·w and C·w from the tables of the flat form alone.
func evaluateFlat(f *constraint.Flat, w *witness.Witness) (values [3][]fr.Element) {
	for m := range values {
		values[m] = make([]fr.Element, f.Constraints)
	}
	value := func(reference uint32, first constraint.FlatInstance) fr.Element {
		n := reference & constraint.FlatNumber
		switch constraint.FlatKind(reference) {
		case constraint.FlatInput:
			return w.Inputs[first.Input+n]
		case constraint.FlatBit:
			if w.Bit(int(first.Aux + n)) {
				return fr.One()
			}
			return fr.Element{}
		case constraint.FlatFull:
			return w.Full[first.Full+n]
		}
		panic("a port among ports")
	}
	for _, t := range f.Templates {
		for k := range t.Instances {
			first := f.Instances[t.FirstInstance+k]
			ports := f.Ports[t.FirstPort+k*t.Ports:][:t.Ports]
			for row := t.FirstRow; row < t.FirstRow+t.Rows; row++ {
				for m := range uint32(3) {
					from := uint32(0)
					if i := 3*row + m; i > 0 {
						from = f.RowEnds[i-1]
					}
					sum := &values[m][first.Constraint+f.RowPlaces[row]]
					for _, term := range f.Terms[from:f.RowEnds[3*row+m]] {
						var x fr.Element
						if constraint.FlatKind(term.Variable) == constraint.FlatPort {
							x = value(ports[term.Variable&constraint.FlatNumber], constraint.FlatInstance{})
						} else {
							x = value(term.Variable, first)
						}
						x.Mul(&x, &f.Coefficients[term.Coefficient])
						sum.Add(sum, &x)
					}
				}
			}
		}
	}
	return values
}
