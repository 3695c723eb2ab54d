package cuda

import (
	"context"
	"fmt"
	"math/big"
	"sync"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/consensys/gnark-crypto/utils"
)

const (
	probePoints    = 48
	probeTransform = 1 << 10
)

// probeCase is a small task with its answer, computed on the CPU.
type probeCase struct {
	encoded []byte // points of G1
	scalars []fr.Element
	sum     bls12381.G1Affine

	values, transformed []fr.Element
}

// newProbe makes the task: points k·G with scalars that have all their words in
// use, and a transform of the same kind of values.
var newProbe = sync.OnceValue(func() *probeCase {
	p := &probeCase{
		scalars: make([]fr.Element, probePoints),
		values:  make([]fr.Element, probeTransform),
	}
	// Powers of an element of large order.
	step := fr.NewElement(7)
	step.Exp(step, big.NewInt(1<<20+7))
	x := step
	next := func() fr.Element { return *x.Mul(&x, &step) }
	_, _, g, _ := bls12381.Generators()
	var total fr.Element
	for k := range p.scalars {
		p.scalars[k] = next()
		multiple := fr.NewElement(uint64(k + 1))
		var point bls12381.G1Affine
		point.ScalarMultiplication(&g, multiple.BigInt(new(big.Int)))
		raw := point.RawBytes()
		p.encoded = append(p.encoded, raw[:]...)
		multiple.Mul(&multiple, &p.scalars[k])
		total.Add(&total, &multiple)
	}
	p.sum.ScalarMultiplication(&g, total.BigInt(new(big.Int)))
	for i := range p.values {
		p.values[i] = next()
	}
	p.transformed = append(p.transformed, p.values...)
	domain := fft.NewDomain(probeTransform)
	domain.FFT(p.transformed, fft.DIF)
	utils.BitReverse(p.transformed)
	return p
})

// Probe has the card compute a small sum and a small transform, and compares
// them with what the CPU makes of them. It takes some milliseconds. Its error is
// an *Error: of kind DeviceFailed if a result is wrong.
func (d *Device) Probe(ctx context.Context) error {
	p := newProbe()
	h, err := d.take(ctx, d.probes)
	if err != nil {
		return err
	}
	defer d.put(d.probes, h)
	sum, err := d.probeSum(h, p)
	if err != nil {
		return d.explain(err, "a sum of %d points as a self-test", probePoints)
	}
	if err := cause(ctx); err != nil {
		return err
	}
	values := append([]fr.Element(nil), p.values...)
	if err := d.api.transform(h, values); err != nil {
		return d.explain(err, "a transform of %d elements as a self-test", probeTransform)
	}
	for _, c := range []struct {
		what  string
		right bool
	}{
		{fmt.Sprintf("a sum of %d points", probePoints), sum.Equal(&p.sum)},
		{fmt.Sprintf("a transform of %d elements", probeTransform), fr.Vector(values).Equal(p.transformed)},
	} {
		if !c.right {
			return &Error{Kind: DeviceFailed, Device: d.name, Doing: c.what + " as a self-test", Message: "the card computed it wrong"}
		}
	}
	return nil
}

func (d *Device) probeSum(h handle, p *probeCase) (sum bls12381.G1Affine, err error) {
	bases, err := d.api.createBases(h, groupG1, probePoints, 1)
	if err != nil {
		return sum, err
	}
	defer d.api.destroyBases(bases)
	if err := d.api.loadBases(h, bases, 0, probePoints, p.encoded); err != nil {
		return sum, err
	}
	return d.api.sum(h, bases, p.scalars)
}
