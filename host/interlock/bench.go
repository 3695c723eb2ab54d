package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/shared"
)

func newBenchCommand(s streams, g *globals) *cobra.Command {
	var oracle, device, memoryLimit, dir string
	var runs int
	var asJSON bool
	c := &cobra.Command{
		Use:   "bench NAME",
		Short: "run a benchmark; 'list' names them, 'all' runs those that need no card and few minutes",
		Args:  cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&oracle, "oracle", "", "`PROGRAM` that makes the same proofs with the Rust originals, timed in the same run")
	c.Flags().IntVar(&runs, "runs", 5, "how often a proof is timed")
	c.Flags().StringVar(&device, "device", "0", "the card that gpu-... benchmarks measure: an `ID` as in a gpu block, or cpu")
	c.Flags().StringVar(&memoryLimit, "memory-limit", "", "how much of the card's memory they may use, such as `16GiB` (default: all)")
	c.Flags().StringVar(&dir, "dir", "", "where they keep parameters for the next time: `PATH` (default: a temporary directory)")
	c.Flags().BoolVar(&asJSON, "json", false, "their results as JSON, an object a line")
	c.RunE = func(c *cobra.Command, args []string) error {
		req := shared.BenchRequest{Name: args[0], Args: []string{
			"runs=" + strconv.Itoa(runs), "device=" + device, "json=" + strconv.FormatBool(asJSON),
		}}
		if memoryLimit != "" {
			req.Args = append(req.Args, "memory-limit="+memoryLimit)
		}
		if dir != "" {
			path, err := absolute(dir)
			if err != nil {
				return err
			}
			req.Args = append(req.Args, "dir="+path)
		}
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
		return asUsage(plugin.Toolbox().Bench(c.Context(), req, func(line string) { fmt.Fprintln(s.out, line) }))
	}
	c.AddCommand(newMakeC1Command(s, g))
	return c
}

func newMakeC1Command(s streams, g *globals) *cobra.Command {
	var seed, miner, sector uint64
	var partitions int
	var out string
	c := &cobra.Command{
		Use:   "make-c1 SECTOR-SIZE",
		Short: "make a SYNTHETIC phase-1 output of a sector that nobody sealed, for tests and benchmarks",
		Args:  cobra.ExactArgs(1),
	}
	f := c.Flags()
	f.Uint64Var(&seed, "seed", 0, "sectors of different seeds `N` are different")
	f.StringVarP(&out, "out", "o", "", "the `FILE` to write")
	f.Uint64Var(&miner, "miner-id", 1000, "miner actor `N`")
	f.Uint64Var(&sector, "sector", 1, "sector number `N`")
	f.IntVar(&partitions, "partitions", 0, "partitions `N` of the proof (default: the size's own)")
	if err := c.MarkFlagRequired("out"); err != nil {
		panic(err) // the flag is defined above
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, err := shared.ParseSectorSize(args[0]); err != nil {
			return usageError{err}
		}
		path, err := absolute(out)
		if err != nil {
			return err
		}
		plugin, err := startPlugin(c.Context(), s, g)
		if err != nil {
			return err
		}
		defer plugin.stop()
		return asUsage(plugin.Toolbox().Bench(c.Context(), shared.BenchRequest{Name: "make-c1", Args: []string{
			"size=" + args[0], "out=" + path, fmt.Sprintf("seed=%d", seed),
			fmt.Sprintf("miner-id=%d", miner), fmt.Sprintf("sector=%d", sector), fmt.Sprintf("partitions=%d", partitions),
		}}, func(line string) { fmt.Fprintln(s.err, line) }))
	}
	return c
}
