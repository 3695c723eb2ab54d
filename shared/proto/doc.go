// Package proto is the protobuf form of the plugin service, generated from interlock.proto. Only package shared uses it.
//
// The generators are pinned: the Go ones as tools of the main module, buf, which drives them, in tools/go.mod.
package proto

//go:generate go tool -modfile=tools/go.mod buf lint
//go:generate go tool -modfile=tools/go.mod buf generate
