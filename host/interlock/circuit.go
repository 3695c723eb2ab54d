package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/shared"
)

// circuitFlags name a circuit: KIND SECTOR-SIZE [--partitions N].
type circuitFlags struct{ partitions int }

const circuitUse = "KIND SECTOR-SIZE"

func (f *circuitFlags) register(c *cobra.Command) {
	c.Args = cobra.ExactArgs(2)
	c.Flags().IntVar(&f.partitions, "partitions", 0, "PoRep: partitions `N` of a proof (default: the size's own)")
}

func (f *circuitFlags) request(args []string) (shared.CircuitRequest, error) {
	kind, err := shared.ParseKind(args[0])
	if err != nil {
		return shared.CircuitRequest{}, usageError{err}
	}
	size, err := shared.ParseSectorSize(args[1])
	if err != nil {
		return shared.CircuitRequest{}, usageError{err}
	}
	r := shared.CircuitRequest{Kind: kind, SectorSize: size, Partitions: f.partitions}
	if err := r.Validate(); err != nil {
		return r, usageError{err}
	}
	return r, nil
}

func newCircuitCommand(s streams, g *globals) *cobra.Command {
	circuit := &cobra.Command{Use: "circuit", Short: "look at circuits"}
	var f circuitFlags
	digest := &cobra.Command{
		Use:   "digest " + circuitUse,
		Short: "print the constraint system's counts and digests as JSON",
	}
	f.register(digest)
	digest.RunE = func(c *cobra.Command, args []string) error {
		req, err := f.request(args)
		if err != nil {
			return err
		}
		plugin, err := startPlugin(c.Context(), s, g)
		if err != nil {
			return err
		}
		defer plugin.stop()
		bar := newProgress(s.err, fmt.Sprintf("%s %s", req.Kind, req.SectorSize))
		d, err := plugin.Toolbox().CircuitDigest(c.Context(), req, bar.report)
		bar.close()
		if err != nil {
			return asUsage(err)
		}
		enc := json.NewEncoder(s.out)
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	circuit.AddCommand(digest)
	return circuit
}
