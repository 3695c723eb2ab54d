package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/shared/timeline"
)

// waterfallColumns fits a terminal of common width.
const waterfallColumns = 100

func newTimelineCommand(s streams) *cobra.Command {
	var trace string
	c := &cobra.Command{
		Use:   "timeline FILE",
		Short: "show a run's phases, efficiency and gaps out of its timeline",
		Args:  cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&trace, "trace", "", "also write a Chrome trace to `FILE`, which Perfetto opens")
	c.RunE = func(_ *cobra.Command, args []string) error {
		recording, err := readTimeline(args[0])
		if err != nil {
			return err
		}
		if trace != "" {
			to, err := newOutput(trace)
			if err != nil {
				return err
			}
			if err := to.commit(recording.WriteChromeTrace); err != nil {
				return err
			}
		}
		if err := recording.WriteWaterfall(s.out, waterfallColumns); err != nil {
			return err
		}
		return timeline.Analyze(recording.Events).WriteText(s.out)
	}
	return c
}

func readTimeline(path string) (timeline.Recording, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return timeline.Recording{}, err
	}
	defer f.Close()
	recording, err := timeline.Parse(f)
	if err != nil {
		return recording, fmt.Errorf("%s: %w", path, err)
	}
	if len(recording.Events) == 0 {
		return recording, fmt.Errorf("%s holds no timeline: no line of it begins with TIMELINE,", path)
	}
	return recording, nil
}
