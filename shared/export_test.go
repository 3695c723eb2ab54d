package shared

// For tests outside the package, which use it as a host and a plugin do.
var (
	NewServer = newServer
	Register  = register
)
