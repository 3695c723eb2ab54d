package interlock

import "container/list"

// Resident is something large that pieces of work share, such as the points of a proving key. The first claim that
// names it takes its bytes too. It stays when nobody uses it any more, and goes when its bytes are needed: of all that
// are idle the least recently used first, pinned ones after all others. A claim that finds it gone takes its bytes
// anew. A nil *Resident is nothing.
type Resident struct {
	budget *Budget
	name   string
	bytes  int64
	evict  func()

	// Under the budget's mu:
	pinned  bool
	users   int
	counted bool          // its bytes are taken
	leaving bool          // its bytes are taken until evict returns
	place   *list.Element // in the budget's idle; nil if it is not there
}

// NewResident describes something of so many bytes, which are not taken yet. evict frees them; it is called at most
// once for each time they were taken, only while nobody uses the resident, and by a goroutine that needs the bytes. It
// must not call the budget. The name is for errors.
func (b *Budget) NewResident(name string, bytes int64, evict func()) *Resident {
	if b == nil {
		return nil
	}
	return &Resident{budget: b, name: name, bytes: bytes, evict: evict}
}

// Pin has the resident evicted only where nothing else would do.
func (r *Resident) Pin() {
	if r == nil {
		return
	}
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	r.pinned = true
}

// Drop evicts the resident unless it is in use, which it tells; one that is not there counts as dropped.
func (r *Resident) Drop() (dropped bool) {
	if r == nil {
		return true
	}
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.users > 0 {
		return false
	}
	if r.counted && !r.leaving {
		b.remove(r)
		b.wake()
	}
	return true
}

// Users is how many reservations hold the resident, and Counted tells whether its bytes are taken.
func (r *Resident) Users() (users int, counted bool) {
	if r == nil {
		return 0, false
	}
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	return r.users, r.counted
}

// use counts one who uses the resident, whose bytes are taken, under mu.
func (r *Resident) use() {
	r.users++
	r.counted = true
	if r.place != nil {
		r.budget.idle.Remove(r.place)
		r.place = nil
	}
}

// leave undoes use, under mu.
func (r *Resident) leave() {
	if r.users--; r.users == 0 {
		r.place = r.budget.idle.PushBack(r)
	}
}

// inTheWay is the idle resident to evict next for a claim; nil if even without all of them it could not be met now.
func (b *Budget) inTheWay(c Claim) *Resident {
	if c.With != nil && c.With.leaving {
		return nil
	}
	var first *Resident
	free := b.free
	for place := b.idle.Front(); place != nil; place = place.Next() {
		r := place.Value.(*Resident)
		if r == c.With {
			continue
		}
		free += r.bytes
		if first == nil || first.pinned && !r.pinned {
			first = r
		}
	}
	if free < b.need(c) {
		return nil
	}
	return first
}

// remove evicts an idle resident. It is called under mu and leaves it meanwhile, since freeing may take long.
func (b *Budget) remove(r *Resident) {
	b.idle.Remove(r.place)
	r.place, r.leaving = nil, true
	b.mu.Unlock()
	defer func() { // also if evict panics
		b.mu.Lock()
		r.leaving, r.counted = false, false
		b.free += r.bytes
	}()
	r.evict()
}
