// Package config is the configuration that an operator writes: its schema in
// HCL, decoding with defaults, and diagnostics that point at the character.
//
// [Find] says which file is in force, [Load] reads it, [Config.CheckHardware]
// compares it with a machine ([DetectHardware], or one described by a test),
// and [Check] is all of that for `interlock config check`. The files:
//
//	schema.go       settings, their defaults, and how the file spells them
//	load.go         finding, reading and decoding a file
//	check.go        rules between settings, and between settings and a machine
//	hardware.go     what a machine has
//	size.go         "5GiB", "80%"
//	cpuset.go       "0-7,16"
//	diagnostics.go  messages: suggestions, order, carets
//
// The package only reads. It starts nothing, opens no device and knows nothing
// of provers: whoever uses a setting is named in the setting's comment.
package config
