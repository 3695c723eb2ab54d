package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/shared/config"
)

func newConfigCommand(s streams) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "look at configurations"}
	var noHardware bool
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "check a configuration file and the hardware it names",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var machine *config.Hardware
			if !noHardware {
				var err error
				if machine, err = config.DetectHardware(); err != nil {
					return fmt.Errorf("looking at this machine (--no-hardware leaves that out): %w", err)
				}
			}
			if !config.Check(args[0], machine, s.err, isTerminal(s.err)) {
				return errReported
			}
			fmt.Fprintf(s.out, "%s: ok\n", args[0])
			return nil
		},
	}
	check.Flags().BoolVar(&noHardware, "no-hardware", false, "do not look for the hardware that the file names")
	c.AddCommand(check)
	return c
}
