package cuda

import (
	"context"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Multiplier multiplies the generators of both groups on a card, as making
// parameters needs it. It takes turns with device phases, whose memory it uses.
type Multiplier struct {
	device *Device
}

// Multiplier returns the card's multiplier. It may be used by several goroutines
// at once.
func (d *Device) Multiplier() *Multiplier { return &Multiplier{d} }

// multiplierBatch scalars in G2 take 650 MB of the card, the table of multiples
// included, or less where scratch memory is short.
const multiplierBatch = 1 << 20

// Batch is how many scalars a call takes at most.
func (m *Multiplier) Batch() int { return multiplierBatch }

// MultiplesG1 writes the multiple of G1's generator by each scalar, none of which
// is zero, to points: 96 bytes each, encoded as in parameter files.
func (m *Multiplier) MultiplesG1(ctx context.Context, points []byte, scalars []fr.Element) error {
	return m.multiples(ctx, groupG1, points, scalars)
}

// MultiplesG2 is MultiplesG1 for the other group, with 192 bytes a point.
func (m *Multiplier) MultiplesG2(ctx context.Context, points []byte, scalars []fr.Element) error {
	return m.multiples(ctx, groupG2, points, scalars)
}

func (m *Multiplier) multiples(ctx context.Context, g group, points []byte, scalars []fr.Element) error {
	d := m.device
	if len(scalars) > multiplierBatch || len(points) != len(scalars)*g.pointBytes() {
		return &Error{Kind: BadArgument, Device: d.name, Doing: "multiplying a generator",
			Message: "more scalars than a batch has, or another number of points"}
	}
	h, err := d.take(ctx, d.compute)
	if err != nil {
		return err
	}
	defer d.put(d.compute, h)
	return d.explain(d.api.multiplyGenerator(h, g, scalars, points), "multiplying a generator by %d scalars", len(scalars))
}
