package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// streams are what a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer // results
	err io.Writer // progress and errors
}

// globals are the flags that every command has.
type globals struct {
	config  string
	params  string
	plugin  string
	verbose bool
}

func newRootCommand(s streams) *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:           "interlock",
		Short:         "Groth16 proofs for Filecoin storage providers",
		Version:       shared.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	f := root.PersistentFlags()
	f.StringVar(&g.config, "config", "", "configuration `FILE` (default: config.hcl here, then /etc/interlock/config.hcl, else built-in)")
	f.StringVar(&g.params, "params", "", "parameter `DIR` (default: the configuration's, then FIL_PROOFS_PARAMETER_CACHE, else "+config.DefaultParamsDir+")")
	f.StringVar(&g.plugin, "plugin", "", "the plugin's `FILE` (default: interlock-prover beside this program)")
	f.BoolVarP(&g.verbose, "verbose", "v", false, "show the plugin's log")
	root.AddCommand(
		newProveCommand(s, g), newVerifyCommand(s, g), newParamsCommand(s, g), newCircuitCommand(s, g),
		newServeCommand(s, g), newStatusCommand(s), newDoctorCommand(s, g), newTimelineCommand(s), newConfigCommand(s), newBenchCommand(s, g),
	)
	useErrors(root)
	return root
}

// useErrors makes every complaint about arguments and required flags wrong use,
// and a group without a subcommand too.
func useErrors(c *cobra.Command) {
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if missing := missingFlags(c); len(missing) > 0 {
			return wrongUse("%s needs %s too", c.CommandPath(), strings.Join(missing, " and "))
		}
		var err error
		c.Flags().Visit(func(f *pflag.Flag) {
			// An unset variable of a script must not mean the working directory. A flag
			// with a default is switched off by an empty value.
			if f.Value.Type() == "string" && f.Value.String() == "" && f.DefValue == "" {
				err = wrongUse("--%s is empty", f.Name)
			}
		})
		return err
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if check(c, args) == nil {
				return nil
			}
			_, takes, _ := strings.Cut(c.Use, " ")
			if takes == "" {
				takes = "no argument"
			}
			if len(args) == 0 {
				return wrongUse("%s takes %s, and there is none", c.CommandPath(), takes)
			}
			return wrongUse("%s takes %s, and there are %d: %s", c.CommandPath(), takes, len(args), strings.Join(args, " "))
		}
	}
	if c.HasSubCommands() && c.Run == nil && c.RunE == nil {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			var names []string
			for _, sub := range c.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name())
				}
			}
			if len(args) == 0 {
				return wrongUse("%s needs one of: %s", c.CommandPath(), strings.Join(names, ", "))
			}
			if hints := c.SuggestionsFor(args[0]); len(hints) > 0 {
				return wrongUse("%s has no %q; did you mean %q?", c.CommandPath(), args[0], hints[0])
			}
			return wrongUse("%s has no %q; there are %s", c.CommandPath(), args[0], strings.Join(names, ", "))
		}
		c.SuggestionsMinimumDistance = 2
	}
	for _, sub := range c.Commands() {
		useErrors(sub)
	}
}

// missingFlags are the flags, with their dashes, that a command cannot do without
// and was not given.
func missingFlags(c *cobra.Command) (missing []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	return missing
}

// flagError says of a flag's value what belongs there.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usageError{err}
	}
	want := ""
	switch invalid.GetFlag().Value.Type() {
	case "duration":
		want = "a duration: write a number followed by ms, s, m or h, such as 90s or 25m"
	case "uint64", "uint32":
		want = "a whole number, 0 or more"
	case "int":
		want = "a whole number"
	case "bool":
		want = "true or false"
	default:
		return usageError{err}
	}
	return wrongUse("--%s: %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}
