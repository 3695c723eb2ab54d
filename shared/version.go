package shared

// Version is the version of this build. The Makefile sets it when it links.
var Version = "development"
