package porep

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// PublicInputs returns the public inputs of a partition in the circuit's order, without the
// leading one: replica id, comm_d and comm_r, then for each challenge the leaves' positions
// in tree D, of all parents in tree C, the challenge itself, and its leaves' positions in
// trees R last and C, which Decode found to be the right ones (generate_public_inputs in
// storage-proofs-porep, circuit/proof.rs).
func (s *Statement) PublicInputs(partition int) []fr.Element {
	inputs := []fr.Element{s.ReplicaID, s.CommD, s.CommR}
	for _, c := range s.Partitions[partition].Challenges {
		node := fr.NewElement(c.Node())
		inputs = append(inputs, node)
		for i := range c.Parents {
			inputs = append(inputs, fr.NewElement(c.Parents[i].Inclusion.Position()))
		}
		inputs = append(inputs, node, node, node)
	}
	return inputs
}
