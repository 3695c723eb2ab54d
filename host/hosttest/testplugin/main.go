// Command testplugin is a plugin for tests that proves nothing, see [hosttest.OpenScripted].
package main

import (
	"os"

	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

func main() { os.Exit(shared.Serve(hosttest.OpenScripted)) }
