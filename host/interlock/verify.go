package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/shared"
)

func newVerifyCommand(s streams, g *globals) *cobra.Command {
	verify := &cobra.Command{Use: "verify", Short: "verify a proof: prints valid and exits 0, or invalid and exits 1"}
	for _, kind := range shared.Kinds() {
		c, r := newKindCommand(kind, "verify")
		var proofFile string
		c.Flags().StringVar(&proofFile, "proof", "", "the proof's `FILE`")
		if err := c.MarkFlagRequired("proof"); err != nil {
			panic(err) // the flag is defined above
		}
		c.RunE = func(c *cobra.Command, args []string) error {
			req, err := r.request(args)
			if err != nil {
				return err
			}
			proof, err := readFile(proofFile, shared.MaxProofBytes)
			if err != nil {
				return err
			}
			plugin, err := startPlugin(c.Context(), s, g)
			if err != nil {
				return err
			}
			defer plugin.stop()
			valid, err := plugin.Toolbox().Verify(c.Context(), req, proof)
			switch {
			case err != nil:
				return inFile(err, req, args)
			case !valid:
				fmt.Fprintln(s.out, "invalid")
				return errReported
			}
			fmt.Fprintln(s.out, "valid")
			return nil
		}
		verify.AddCommand(c)
	}
	return verify
}
