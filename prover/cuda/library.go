package cuda

import (
	"fmt"

	"github.com/hashicorp/go-hclog"
)

// Version of the library that this package was written for.
const Version = 4

// libraryName is the file's name.
const libraryName = "libinterlock_cuda.so"

// Library is a loaded libinterlock_cuda.so. It stays loaded until the process
// ends.
type Library struct {
	path string
	api  api
}

// Path is the file that was loaded, or the name by which the loader found it.
func (l *Library) Path() string { return l.path }

// Info describes a card.
type Info struct {
	Index        int
	Name         string
	UUID         string // as nvidia-smi prints it
	PCIAddress   string // 0000:41:00.0
	MemoryBytes  int64
	Major, Minor int // compute capability
	Processors   int // multiprocessors
	DriverCUDA   int // the CUDA version that the driver serves: 13000 for 13.0
}

// Devices lists the cards of the machine. It takes no memory on them.
func (l *Library) Devices() ([]Info, error) {
	n, err := l.api.countDevices()
	if err != nil {
		return nil, explain(err, "", "counting the cards")
	}
	out := make([]Info, n)
	for i := range out {
		if out[i], err = l.api.describeDevice(i); err != nil {
			return nil, explain(err, fmt.Sprintf("card %d", i), "describing it")
		}
	}
	return out, nil
}

// FreeBytes is how much of a card's memory is free now. It starts the card, which
// takes some hundred MB of it until the process ends.
func (l *Library) FreeBytes(index int) (int64, error) {
	bytes, err := l.api.freeMemory(index)
	return bytes, explain(err, fmt.Sprintf("card %d", index), "asking for its free memory")
}

// Config says how to open a card.
type Config struct {
	Name             string       // as the configuration names it, such as "gpu 0"
	Index            int          // of Devices
	MemoryLimitBytes int64        // of the card's memory; 0 for all that is free
	Workers          int          // how many partitions are prepared at the same time; at least 1
	Log              hclog.Logger // nil for none
}
