// Package host is the library that sealing software links to prove with Interlock: it starts the plugin process, passes
// calls to it, brings its log home, and ends it.
//
// [Start] gives a [Host], which is a [shared.Prover]. Whatever becomes of the plugin process, the program that uses this
// package lives on: each call in flight then fails with a [*shared.PluginDiedError] that says how the process ended and
// what it last wrote.
//
//	host.go      Host and its options: what sealing software sees
//	instance.go  one plugin from its start to its end, and the calls it carries
//	process.go   its process: pipes, exit, kill
//	tail.go      the last lines it wrote
//
// The package knows nothing of circuits, devices or the configuration's content.
package host
