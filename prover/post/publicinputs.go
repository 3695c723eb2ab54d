package post

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// PublicInputs returns the public inputs of a partition in the circuit's order, without the
// leading one: for each sector comm_r, then the challenged leaves' positions, which Decode
// found to be the challenges (generate_public_inputs in storage-proofs-post,
// fallback/compound.rs).
func (p *Partition) PublicInputs() []fr.Element {
	var inputs []fr.Element
	for _, s := range p.Sectors {
		inputs = append(inputs, s.CommR)
		for i := range s.Inclusions {
			inputs = append(inputs, fr.NewElement(s.Inclusions[i].Position()))
		}
	}
	return inputs
}
