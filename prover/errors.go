package prover

import (
	"errors"
	"strings"

	"github.com/interlock-prover/interlock/prover/bincode"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/shared"
)

// atBoundary is err as the boundary knows it: faults of a request's fields and
// of parameter files, and what is too large, keep their parts; anything else
// stays as it is.
func atBoundary(err error) error {
	var field *bincode.FieldError
	var file *params.Error
	var incompatible *groth16.IncompatibleError
	var tooLarge *interlock.TooLargeError
	switch {
	case errors.As(err, &field):
		return &shared.InvalidRequestError{Field: field.Field, Reason: field.Reason}
	case errors.As(err, &file):
		return &shared.ParamsError{Path: file.Path, Reason: file.Reason, Remedy: file.Remedy}
	case errors.As(err, &incompatible):
		return &shared.ParamsError{Reason: incompatible.Reason, Remedy: "fetch the parameters of this circuit again"}
	case errors.As(err, &tooLarge):
		remedy := "raise the card's memory_limit, or use a larger card"
		if strings.HasPrefix(tooLarge.Budget, hostMemory) {
			remedy = "raise memory { budget }, lower its margin, or use a machine with more memory"
		}
		return &shared.TooLargeError{
			WantBytes: uint64(tooLarge.WantBytes), BudgetBytes: uint64(tooLarge.BudgetBytes), Detail: err.Error() + "; " + remedy,
		}
	}
	return err
}
