// Package cuzkpb is the cuzk.v1 service in protobuf, generated from cuzk.proto with the generators that package
// shared/proto pins. Package gateway alone uses it.
package cuzkpb

//go:generate go tool -modfile=../../../shared/proto/tools/go.mod buf lint
//go:generate go tool -modfile=../../../shared/proto/tools/go.mod buf generate
