package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/interlock-prover/interlock/prover/cuda"
	"github.com/interlock-prover/interlock/shared"
)

// reportCards writes what cards there are, see [shared.CardsCommand], and gives
// the exit code.
func reportCards(library string, out io.Writer) (exitCode int) {
	if err := json.NewEncoder(out).Encode(cards(library)); err != nil {
		fmt.Fprintf(os.Stderr, "writing what cards there are: %v\n", err)
		return 1
	}
	return 0
}

func cards(path string) shared.CardsReport {
	library, err := cuda.Load(path)
	var infos []cuda.Info
	if err == nil {
		infos, err = library.Devices()
	}
	if err != nil {
		report := shared.CardsReport{Fault: err.Error()}
		if e := (*cuda.LibraryError)(nil); errors.As(err, &e) {
			report.Fault, report.Remedy, report.Library = e.Path+": "+e.Reason, e.Remedy, e.Path
		}
		return report
	}
	report := shared.CardsReport{Library: library.Path(), LibraryVersion: cuda.Version}
	for _, info := range infos {
		report.DriverCUDA = info.DriverCUDA
		celsius, _ := info.TemperatureCelsius()
		free, _ := library.FreeBytes(info.Index) // none of a card that does not start
		report.Cards = append(report.Cards, shared.Card{
			Model: info.Name, UUID: info.UUID, PCIAddress: info.PCIAddress,
			MemoryBytes: uint64(info.MemoryBytes), FreeBytes: uint64(free), TemperatureCelsius: celsius,
		})
	}
	return report
}
