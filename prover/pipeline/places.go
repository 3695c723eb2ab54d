package pipeline

import (
	"sync"

	"github.com/interlock-prover/interlock/shared"
)

// places bounds the witnesses ahead of the devices, from before each is begun until a device takes it. A partition whose
// priority is above that of all that are ahead needs no free place: else it would wait for a device to take one of them,
// which the device would then work on before it. So there is one more at most for each priority above the lowest.
type places struct {
	mu    sync.Mutex
	free  int // below 0 while there are more than places
	ahead [shared.PriorityCritical + 1]int
}

func newPlaces(n int) *places { return &places{free: n} }

// take takes a place for a task, if there is one for it.
func (p *places) take(t *task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	priority := t.request.Priority
	if p.free <= 0 {
		for _, n := range p.ahead[priority:] {
			if n > 0 {
				return false
			}
		}
	}
	p.free--
	p.ahead[priority]++
	return true
}

// give gives a task's place back.
func (p *places) give(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	p.ahead[t.request.Priority]--
}

// leavePlace gives a task's place ahead of the devices back, and has the partitions that wait for one look again.
func (p *Pipeline) leavePlace(t *task) {
	p.ahead.give(t)
	p.pending.look()
}
