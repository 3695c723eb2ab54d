// Package gateway serves a prover to sealing software in any language and to people: by the cuzk.v1 service that Curio's
// client speaks, by Prometheus metrics, and by a status page.
//
//	gateway.go   Gateway: what it is made of, its start and its end
//	service.go   the eight calls of cuzk.v1: thin translations
//	request.go   what a call asks for, as the prover wants it: kinds, registered proofs, circuit ids
//	jobs.go      the book of jobs: joining equal requests, keeping answers
//	receive.go   messages on their way in, admitted before they are read
//	listen.go    TCP and unix sockets, TLS
//	cuzkpb/      the service in protobuf, generated
//
// The package knows nothing of circuits, devices or processes: all it needs is a [shared.Prover].
package gateway
