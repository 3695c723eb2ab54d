// Package gateway serves a prover to sealing software in any language and to people: by the cuzk.v1 service that Curio's
// client speaks, by Prometheus metrics, and by a status page.
//
//	gateway.go   Gateway: what it is made of, its start and its end
//	service.go   the eight calls of cuzk.v1: thin translations
//	request.go   what a call asks for, as the prover wants it: kinds, registered proofs, circuit ids
//	jobs.go      the book of jobs: joining equal requests, keeping answers
//	receive.go   messages on their way in, admitted before they are read
//	codec.go     large messages, decoded with one copy
//	listen.go    TCP and unix sockets, TLS
//	queue.go     what is counted for back-pressure
//	observe.go   looks at the prover, for all who want to know
//	metrics.go   what Prometheus reads
//	snapshot.go  what the status page and `interlock status` show
//	web.go       metrics and status page over HTTP
//	page/        the status page
//	cuzkpb/      the service in protobuf, generated
//
// The package knows nothing of circuits, devices or processes: all it needs is a [shared.Prover].
package gateway
