package shared

// CardsCommand is the argument with which a plugin's program, instead of serving, looks at the cards of the machine and
// writes a [CardsReport] to standard output, as JSON. The path of the library with the kernels follows, empty if none is
// configured. So a host learns what is wrong with cards although no plugin can start, and without touching one itself.
const CardsCommand = "cards"

// CardsReport is what a plugin could prove with beside the CPU.
type CardsReport struct {
	// Fault is why no card can be used; empty if they can. Remedy is what to do then.
	Fault, Remedy string

	Library        string // the file with the kernels, or the name by which the loader found it
	LibraryVersion int    // of its interface
	DriverCUDA     int    // the CUDA version that the driver serves: 13000 for 13.0; 0 without a card
	Cards          []Card
}

// Card is a card as CUDA shows it.
type Card struct {
	Model              string
	UUID               string // as nvidia-smi prints it
	PCIAddress         string // 0000:41:00.0
	MemoryBytes        uint64
	FreeBytes          uint64 // now; CUDA's own part counts as used
	TemperatureCelsius int    // 0 if it is not known
}
