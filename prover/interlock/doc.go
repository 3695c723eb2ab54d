// Package interlock has what several workers need to share one GPU and one budget of memory: a [Lock] that is handed
// over first come first served and is given back on every path, a [Semaphore] that remembers signals sent before their
// wait, a [Budget] that admits work by bytes, with [Resident] things that work shares and that go when their bytes are
// needed, and [Loads], which loads what is shared once for all who wait for it.
//
// All wait in the same way: a queue in which the first waiter is always the next to be served, and from which a waiter
// whose context ends goes away without taking anything along. The package knows nothing of GPUs, proofs or pipelines.
package interlock
