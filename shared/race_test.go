//go:build race

package shared_test

const raceEnabled = true
