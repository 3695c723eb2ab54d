package params

import (
	"fmt"
	"path/filepath"
	"strings"
)

// version is the prefix that all parameter files of these circuits share, as
// storage-proofs-core's parameter cache has it.
const version = "v28"

// Set names a set of parameters and how a user asks for it.
type Set struct {
	// ID is the part of the file names that varies: circuit, tree shape and the
	// SHA-256 of the public parameters' description.
	ID string
	// Kind and SectorSize are the words that the command `interlock params
	// setup` takes. They only serve to tell the user what to do.
	Kind, SectorSize string
	// Partitions is that command's option of the same name; 0 leaves it out.
	Partitions int
}

// ParamsPath is where the set's parameter file is within dir.
func (s Set) ParamsPath(dir string) string { return s.path(dir, ".params") }

// VKPath is where the set's verifying key is within dir.
func (s Set) VKPath(dir string) string { return s.path(dir, vkExt) }

// LabelPath is where the label of development parameters is within dir.
func (s Set) LabelPath(dir string) string { return s.path(dir, ".insecure") }

func (s Set) path(dir, ext string) string {
	return filepath.Join(dir, version+"-"+s.ID+ext)
}

func (s Set) setupRemedy(dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "fetch it, or for development: interlock params setup %s %s --insecure-dev --dir %s", s.Kind, s.SectorSize, dir)
	if s.Partitions != 0 {
		fmt.Fprintf(&b, " --partitions %d", s.Partitions)
	}
	return b.String()
}
