package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/shared"
)

func newParamsCommand(s streams, g *globals) *cobra.Command {
	params := &cobra.Command{Use: "params", Short: "make and check parameter files"}
	params.AddCommand(newSetupCommand(s, g), newParamsVerifyCommand(s, g))
	return params
}

func newSetupCommand(s streams, g *globals) *cobra.Command {
	var f circuitFlags
	var dir string
	var insecure bool
	c := &cobra.Command{
		Use:   "setup " + circuitUse,
		Short: "make development parameters, which anyone can forge proofs for",
	}
	f.register(c)
	c.Flags().StringVar(&dir, "dir", "", "the `DIR` to write to")
	c.Flags().BoolVar(&insecure, "insecure-dev", false, "confirms that the parameters are for development alone: their secret is public")
	if err := c.MarkFlagRequired("dir"); err != nil {
		panic(err) // the flag is defined above
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		circuit, err := f.request(args)
		if err != nil {
			return err
		}
		if !insecure {
			return wrongUse("the parameters made here are for development alone; say so with --insecure-dev")
		}
		if dir, err = absolute(dir); err != nil {
			return err
		}
		plugin, err := startPlugin(c.Context(), s, g)
		if err != nil {
			return err
		}
		defer plugin.stop()
		bar := newProgress(s.err, fmt.Sprintf("setup %s %s", circuit.Kind, circuit.SectorSize))
		r, err := plugin.Toolbox().SetupParams(c.Context(), shared.SetupRequest{CircuitRequest: circuit, Dir: dir}, bar.report)
		bar.close()
		if err != nil {
			return asUsage(err)
		}
		fmt.Fprintf(s.out, "%s  %s\n%s  %s\n", r.ParamsSHA256, r.ParamsPath, r.VKSHA256, r.VKPath)
		fmt.Fprintf(s.err, "INSECURE development parameters: %d and %d bytes, made in %s; proofs made with them prove nothing to anybody else\n",
			r.ParamsBytes, r.VKBytes, round(r.Elapsed))
		return nil
	}
	return c
}

func newParamsVerifyCommand(s streams, g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE",
		Short: "check a parameter file: structure, every point, digest",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := absolute(args[0])
			if err != nil {
				return err
			}
			plugin, err := startPlugin(c.Context(), s, g)
			if err != nil {
				return err
			}
			defer plugin.stop()
			bar := newProgress(s.err, "params verify")
			r, err := plugin.Toolbox().CheckParams(c.Context(), path, bar.report)
			bar.close()
			if err != nil {
				return err
			}
			circuit := "no circuit that is known by its name"
			if r.Kind != 0 {
				circuit = fmt.Sprintf("%s %s", r.Kind, r.SectorSize)
			}
			points := fmt.Sprintf("IC %d, H %d, L %d, A %d, B in G1 %d, B in G2 %d", r.IC, r.H, r.L, r.A, r.BG1, r.BG2)
			if r.H == 0 { // no parameter file is without
				points = fmt.Sprintf("IC %d, a verifying key", r.IC)
			}
			fmt.Fprintf(s.out, "ok  %s\nparameter set  %s\nfor  %s\nbytes  %d\nsha256  %s\nblake2b  %s\npoints  %s\n",
				r.Path, r.ParameterSet, circuit, r.Bytes, r.SHA256, r.Blake2b, points)
			if r.Listed {
				fmt.Fprintln(s.out, "listed in the manifest")
			}
			if r.Insecure {
				fmt.Fprintln(s.out, "INSECURE development parameters")
			}
			for _, file := range r.Leftovers {
				fmt.Fprintf(s.out, "left by a setup that was killed; the next setup there removes it, or remove it now  %s\n", file)
			}
			return nil
		},
	}
}
