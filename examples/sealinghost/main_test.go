package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

// The example works against a plugin process, and says what the plugin refuses.
func TestProve(t *testing.T) {
	options := host.Options{PluginPath: hosttest.Build(t, "../../host/hosttest/testplugin"), Logger: hosttest.Logger(t)}
	request, err := inputs.PoSt("winning-2KiB")
	require.NoError(t, err)
	require.NoError(t, prove(t.Context(), options, request))

	request.Randomness = nil
	var invalid *shared.InvalidRequestError
	require.ErrorAs(t, prove(t.Context(), options, request), &invalid)
}
