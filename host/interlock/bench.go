package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/shared"
)

func newBenchCommand(s streams, g *globals) *cobra.Command {
	var oracle string
	var runs int
	c := &cobra.Command{
		Use:   "bench NAME",
		Short: "run a benchmark; 'list' names them, 'all' runs them all",
		Args:  cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&oracle, "oracle", "", "`PROGRAM` that makes the same proofs with the Rust originals, timed in the same run")
	c.Flags().IntVar(&runs, "runs", 5, "how often a proof is timed")
	c.RunE = func(c *cobra.Command, args []string) error {
		req := shared.BenchRequest{Name: args[0], Args: []string{"runs=" + strconv.Itoa(runs)}}
		if oracle != "" {
			path, err := absolute(oracle)
			if err != nil {
				return err
			}
			req.Args = append(req.Args, "oracle="+path)
		}
		plugin, err := startPlugin(c.Context(), s, g)
		if err != nil {
			return err
		}
		defer plugin.stop()
		return plugin.Toolbox().Bench(c.Context(), req, func(line string) { fmt.Fprintln(s.out, line) })
	}
	return c
}
