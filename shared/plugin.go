package shared

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// ProtocolVersion is the version of the service between host and plugin. A host and a plugin of different versions
// refuse each other at the handshake. It goes up with every change that one side would misread.
const ProtocolVersion = 2

// PluginName is the name under which the plugin is dispensed: one plugin, with the services of [Prover] and [Toolbox].
const PluginName = "interlock"

// Handshake is what host and plugin must agree on before they talk. The cookie is no secret: it tells a plugin that a
// host has started it. What keeps others out is mutual TLS with keys made for each process (AutoMTLS).
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolVersion,
	MagicCookieKey:   "INTERLOCK_PLUGIN_COOKIE",
	MagicCookieValue: "0b61e61f6b1f4c4f8b5f3d0a9c1d7e52",
}

// A host tells the plugin its configuration by these environment variables.
const (
	EnvConfig   = "INTERLOCK_CONFIG"    // path of the configuration file; unset or empty: built-in defaults
	EnvParams   = "INTERLOCK_PARAMS"    // parameter directory that goes before the configuration's; may be unset
	EnvLogLevel = "INTERLOCK_LOG_LEVEL" // the least level that the host wants to hear of, as hclog names it
	EnvPreload  = "INTERLOCK_PRELOAD"   // "no": nothing is loaded before it is needed, whatever the configuration says
	EnvLifeline = "INTERLOCK_LIFELINE"  // "stdin": standard input ends when the host goes away, see Serve
)

// healthService is the name under which go-plugin registers the health of every plugin.
const healthService = plugin.GRPCServiceName

// Plugins is the set of plugins that both sides give to go-plugin. The host needs no implementation.
func Plugins(implementation Plugin) plugin.PluginSet {
	return plugin.PluginSet{PluginName: &binding{implementation: implementation}}
}

// binding ties the service to go-plugin.
type binding struct {
	plugin.NetRPCUnsupportedPlugin
	implementation Plugin
}

var _ plugin.GRPCPlugin = (*binding)(nil)

// GRPCServer is called in the plugin.
func (b *binding) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	register(server, b.implementation, b.implementation)
	return nil
}

// GRPCClient is called in the host. It gives a [*Client].
func (b *binding) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return NewClient(conn), nil
}
