package porep

import (
	"fmt"

	"github.com/interlock-prover/interlock/prover/bincode"
)

// FieldError names a field of a phase-1 output that is wrong, and says how:
// vanilla_proofs[0][1].comm_d_proofs.path, root is not comm_d.
type FieldError = bincode.FieldError

func fault(field, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
