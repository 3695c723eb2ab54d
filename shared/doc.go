// Package shared is the boundary between a host and the plugin process that proves for it: everything that both sides
// must agree on, and nothing else.
//
// A reader finds a change's place by the file's name:
//
//   - types.go: requests, results and status, plain Go types that validate themselves;
//   - prover.go, toolbox.go: the two interfaces, [Prover] for sealing software and [Toolbox] for the operator's tool;
//   - errors.go: the errors that keep their type across the boundary;
//   - plugin.go: the handshake and the binding to go-plugin; serve.go: the main loop of a plugin process;
//   - client.go, server.go: the two interfaces over gRPC, thin translations;
//   - sealed.go: large payloads, as files in memory that both sides see; detached.go: a plugin that outlives its host;
//     detachedlog.go: its log, which is bounded;
//   - cards.go: what the plugin's program says of the machine's cards; version.go: the version that both are built with;
//   - convert.go, status.go: between Go types and protobuf, errors and gRPC status. Nobody else sees protobuf.
//
// The package knows nothing of circuits, devices or how a process is started; it imports neither host nor prover.
package shared
