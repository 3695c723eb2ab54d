// Package interlock has what several workers need to share one GPU and one budget of memory: a [Lock] that is handed
// over first come first served and is given back on every path, a [Semaphore] that remembers signals sent before their
// wait, and a [Budget] that admits work by bytes, with [Resident] things that work shares and that go when their bytes
// are needed.
//
// All wait in the same way: a queue in which the first waiter is always the next to be served, and from which a waiter
// whose context ends goes away without taking anything along. The package knows nothing of GPUs, proofs or pipelines.
package interlock
