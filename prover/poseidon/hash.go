package poseidon

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Hash returns the hash of a tree's node of 2, 4, 8 or 11 children.
func Hash(inputs []fr.Element) fr.Element {
	return For(len(inputs)).Hash(inputs)
}

// Hash returns the hash of c.Arity inputs.
func (c *Constants) Hash(inputs []fr.Element) fr.Element {
	return c.permute(inputs, nil)
}

// TraceLen is the number of values that Trace writes.
func (c *Constants) TraceLen() int {
	sBoxes := c.FullRounds*c.Width + c.PartialRounds
	return 4*sBoxes - 4 - c.Arity + 1
}

// Trace is Hash which also writes the values of all auxiliary variables that neptune's
// legacy circuit allocates for this hash, in its order, to trace (TraceLen elements).
// Those of an S-box are its input l, l^2, l^4 and l^5 + constant. In the first round l is
// not there, since inputs are variables already (the constant before it is inside
// l^2 and what follows), and element 0, a constant, has none. The last value is the hash.
func (c *Constants) Trace(inputs, trace []fr.Element) fr.Element {
	if len(trace) != c.TraceLen() {
		panic(fmt.Sprintf("poseidon: trace of %d values, not %d", len(trace), c.TraceLen()))
	}
	return c.permute(inputs, trace)
}

// permute hashes the inputs, and traces if trace is not nil.
func (c *Constants) permute(inputs, trace []fr.Element) fr.Element {
	if len(inputs) != c.Arity {
		panic(fmt.Sprintf("poseidon: %d inputs for arity %d", len(inputs), c.Arity))
	}
	t, half := c.Width, c.FullRounds/2
	keys := c.CompressedRoundConstants
	// Each linear layer takes s to z; then they change places.
	var states [2][maxWidth]fr.Element
	s, z := &states[0], &states[1]

	// First full round. Element 0 is constant up to here.
	s[0] = c.tag
	for i := 1; i < t; i++ {
		s[i].Add(&inputs[i-1], &keys[i])
		l2, l4 := sBox(&s[i], &keys[t+i])
		if trace != nil {
			trace[0], trace[1], trace[2] = l2, l4, s[i]
			trace = trace[3:]
		}
	}
	keys = keys[2*t:]
	c.mixer.mix(z, s, t)
	s, z = z, s
	unscale(s[:t], &c.mixer.down[1])

	for range half - 2 {
		trace = c.fullRound(s, keys, trace)
		keys = keys[t:]
		c.mixer.mix(z, s, t)
		s, z = z, s
		unscale(s[:t], &c.mixer.down[1])
	}
	trace = c.fullRound(s, keys, trace)
	keys = keys[t:]
	c.mixer.mix(z, s, t)
	s, z = z, s

	// Partial rounds: the state is lambda^r times the true one.
	for r := 1; r <= c.PartialRounds; r++ {
		y := &s[0]
		y.Mul(y, &c.mixer.down[r])
		l := *y
		l2, l4 := sBox(y, &keys[r-1])
		if trace != nil {
			trace[0], trace[1], trace[2], trace[3] = l, l2, l4, *y
			trace = trace[4:]
		}
		y.Mul(y, &c.mixer.up[r])
		c.mixer.mix(z, s, t)
		s, z = z, s
	}
	keys = keys[c.PartialRounds:]
	unscale(s[:t], &c.mixer.down[c.PartialRounds+1])

	for range half - 1 {
		trace = c.fullRound(s, keys, trace)
		keys = keys[t:]
		c.mixer.mix(z, s, t)
		s, z = z, s
		unscale(s[:t], &c.mixer.down[1])
	}
	trace = c.fullRound(s, nil, trace)
	var hash fr.Element
	c.mixer.column(&hash, s, t, 1)
	hash.Mul(&hash, &c.mixer.down[1])
	if trace != nil {
		trace[0] = hash
	}
	return hash
}

// fullRound applies the S-boxes of a full round but the first, and adds the keys; the
// last round has none. It returns what is left of the trace.
func (c *Constants) fullRound(s *[maxWidth]fr.Element, keys, trace []fr.Element) []fr.Element {
	var none fr.Element
	for i := range c.Width {
		key := &none
		if keys != nil {
			key = &keys[i]
		}
		l := s[i]
		l2, l4 := sBox(&s[i], key)
		if trace != nil {
			trace[0], trace[1], trace[2], trace[3] = l, l2, l4, s[i]
			trace = trace[4:]
		}
	}
	return trace
}

// sBox replaces x by x^5 + key, and returns x^2 and x^4.
func sBox(x, key *fr.Element) (x2, x4 fr.Element) {
	x2.Square(x)
	x4.Square(&x2)
	x.Mul(x, &x4)
	x.Add(x, key)
	return x2, x4
}

func unscale(s []fr.Element, by *fr.Element) {
	for i := range s {
		s[i].Mul(&s[i], by)
	}
}
