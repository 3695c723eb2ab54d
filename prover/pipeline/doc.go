// Package pipeline brings requests to their proofs: it decides which partition goes next, keeps the devices busy and
// the memory within its budgets, and hands out no proof that it has not seen verified.
//
// A request goes through these hands, one file each:
//
//   - pipeline.go: Submit, Prove, Await, Cancel, Close; request.go: what is known of a request until it is answered;
//   - assemble.go: its own goroutine decodes it, loads what it needs, splits it into partitions, puts their proofs
//     together, checks the whole and answers;
//   - job.go: what it asks of a job and of a device; errors.go: why a request failed; places.go: how many witnesses may
//     be ahead of the devices; status.go: what it does now;
//   - queue.go: partitions wait by priority, those of one priority by arrival, whichever request they belong to;
//   - witness.go: witness workers compute witnesses, only so many and so many bytes ahead of the devices;
//   - worker.go: several workers a device (two by default) prepare, run and finish partitions; only the device phase
//     is under the device's interlock, so that one prepares or finishes while another computes;
//   - fault.go: a device that fails is out of use until it passes a self-test, and its partitions go elsewhere, to the
//     fallback or wait;
//   - release.go: gives memory back beside the workers.
//
// What is proven and on what is none of its business: it sees a [Job] that can make and check witnesses and proofs, and
// a [Device] that turns a witness into a proof in three steps. It knows nothing of circuits, parameters or curves.
package pipeline
