package update

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// PublicInputs returns the public inputs of a partition in the circuit's order, without the
// leading one: the partition's number with the choice of high digits above it, comm_r_old,
// comm_d_new and comm_r_new (PublicInputs in storage-proofs-update, circuit.rs).
func (p *Partition) PublicInputs() []fr.Element {
	return []fr.Element{fr.NewElement(p.selector()), p.ROld, p.DNew, p.RNew}
}

// selector is the first public input: above the partition's digits, one bit for each choice
// of high digits, of which the one in use is set.
func (p *Partition) selector() uint64 {
	return uint64(p.Index) | 1<<(p.Params.partitionBits()+p.Params.highIndex())
}
