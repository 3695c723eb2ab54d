package msm_test

import (
	"context"
	"fmt"
	"math/big"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/msm"
)

// Five scalars, of which the first and third are bits and the second has no
// base: 1, 9 (no base), 0, 2, 3.
func ExampleG1Compact() {
	_, _, generator, _ := bls12381.Generators()
	scalars := msm.Compact{
		N:     5,
		IsBit: []uint64{0b00101},
		Bits:  []uint64{0b00001},
		Full:  []fr.Element{fr.NewElement(9), fr.NewElement(2), fr.NewElement(3)},
		Dense: []uint64{0b11101},
	}
	bases := []bls12381.G1Affine{generator, generator, generator, generator}
	sum, err := msm.G1Compact(context.Background(), bases, &scalars, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	var got, six bls12381.G1Affine
	six.ScalarMultiplication(&generator, big.NewInt(6))
	fmt.Println(*got.FromJacobian(&sum) == six)
	// Output: true
}
