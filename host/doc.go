// Package host is the library that sealing software links to prove with Interlock: it starts the plugin process, passes
// calls to it, brings its log home, and ends it.
//
// [Start] gives a [Host], which is a [shared.Prover] with one plugin. Whatever becomes of the plugin process, the program
// that uses this package lives on: each call in flight then fails with a [*shared.PluginDiedError] that says how the
// process ended and what it last wrote.
//
// [Supervise] gives a [Supervisor], a [shared.Prover] that answers every request it has accepted exactly once: it starts
// the next plugin when one dies or hangs, passes on what was not answered, sets aside requests that bring down every
// plugin, and with a journal goes on after its own end.
//
//	host.go        Host and its options
//	supervisor.go  Supervisor and its options
//	keeper.go      one plugin after the other: probes, watchdogs, backoff, crash loops
//	job.go         a request from its acceptance to its answer
//	journal/       accepted requests and answers on disk
//	instance.go    one plugin from its start to its end, and the calls it carries
//	process.go     its process: pipes, exit, kill
//	detach.go      the process of a plugin that outlives its host, and finding it again
//	cards.go       what cards the plugin's program sees, without a plugin
//	program.go     its program, if only a certain one may be started
//	sockets.go     the directory of its socket
//	tail.go        the last lines it wrote
//
// The package knows nothing of circuits, devices or the configuration's content.
package host
