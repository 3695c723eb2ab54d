package shared

import "time"

// PreloadResult says what loading a circuit's parameters ahead of their first use did.
type PreloadResult struct {
	AlreadyLoaded bool
	Elapsed       time.Duration
}

// EvictResult says what dropping a circuit's parameters did.
type EvictResult struct {
	WasLoaded  bool
	FreedBytes uint64
}
