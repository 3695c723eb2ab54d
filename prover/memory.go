package prover

import (
	"fmt"
	"time"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/memory"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// How the host's memory is shared out. The configured budget less its margin is
// what may be reserved. A sixteenth of that is for requests, as they were sent
// and as they are decoded, from acceptance to answer. The rest is for partitions
// and for the parameters they share, see interlock.Budget. The two are apart so
// that requests which wait can never take what the one that runs needs.
//
// Not counted, and left to the margin: the program itself, compiled circuits
// (templates and a few bits a variable: from a fortieth of their parameters at
// 2 KiB to a thousandth at 32 GiB) and what the garbage collector has not
// collected yet.
const requestsShare = 16

// bytesPerVanilla is how many bytes a request takes for each byte of its vanilla
// proofs: themselves and what they are decoded into, which is as much for
// bincode and less for JSON.
const bytesPerVanilla = 2

// hostMemory is how budgets of the host's memory are called in errors.
const hostMemory = "host memory"

// budgets divides what may be reserved, and bounds Go's heap.
func budgets(c *config.Memory, machine config.ByteSize) (partitions, requests *interlock.Budget) {
	memory.SetBudget(int64(c.BudgetBytes(machine)))
	reservable := int64(c.ReservableBytes(machine))
	return interlock.NewBudget(hostMemory, reservable-reservable/requestsShare),
		interlock.NewBudget(hostMemory+" for requests", reservable/requestsShare)
}

// reservePayload takes the memory of a request's vanilla proofs. It does not
// wait: who sent the request still has it and can send it again.
func (e *Engine) reservePayload(r *shared.Request) (*interlock.Reservation, error) {
	var claim interlock.Claim
	for _, v := range r.Vanilla {
		claim.Bytes += bytesPerVanilla * int64(len(v))
	}
	if err := e.requests.Check(claim); err != nil {
		return nil, atBoundary(err)
	}
	reservation, ok := e.requests.TryReserve(claim)
	if !ok {
		return nil, &shared.BusyError{
			Resource:   fmt.Sprintf("the memory for requests, %d of %d bytes,", e.requests.Used(), e.requests.Capacity()),
			RetryAfter: time.Second,
		}
	}
	return reservation, nil
}
