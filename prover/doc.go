// Package prover is the engine of the plugin process: it implements
// shared.Prover and shared.Toolbox out of the packages below it.
//
//   - engine.go: opening, proving, closing; job.go: one request as the pipeline
//     sees it; status.go: what all of it does now;
//   - kind.go: what the engine needs of a kind of proof, and post.go and its
//     siblings, which give it, one file a kind;
//   - devices.go: the cards that the configuration names, and the CPU, as the
//     pipeline sees them; affinity.go: the CPUs that each runs on;
//   - circuits.go, keys.go: compiled circuits and opened parameters, made once
//     and shared; memory.go: how the host's memory is shared out;
//   - toolbox.go, digest.go, bench.go, bench_gpu.go, makec1.go: the operator's
//     tools;
//   - errors.go: errors of the packages below as errors of the boundary.
//
// It knows nothing of gRPC or of how its process was started.
package prover
