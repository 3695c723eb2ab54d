package update

import (
	"fmt"

	"github.com/interlock-prover/interlock/prover/bincode"
)

// FieldError names a field of a request that is wrong, and says how:
// vanilla[2].challenge_proofs[7].proof_d_new.path: does not lead to comm_d_new.
type FieldError = bincode.FieldError

func fault(field, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
