package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

func newProveCommand(s streams, g *globals) *cobra.Command {
	prove := &cobra.Command{Use: "prove", Short: "make a proof out of vanilla proofs"}
	for _, kind := range shared.Kinds() {
		c, r := newKindCommand(kind, "prove")
		var out, timelineFile string
		c.Flags().StringVarP(&out, "out", "o", "", "write the proof's bytes to `FILE` (default: hexadecimal to standard output)")
		c.Flags().StringVar(&timelineFile, "timeline", "", "write the run's timeline to `FILE`, for 'interlock timeline'")
		c.Flags().StringVar(&r.priority, "priority", "", "`LEVEL`: low, normal, high or critical")
		c.Flags().DurationVar(&r.deadline, "deadline", 0, "give up after `TIME` from now, such as 25m")
		c.RunE = func(c *cobra.Command, args []string) error {
			req, err := r.request(args)
			if err != nil {
				return err
			}
			return inFile(proveRequest(c, s, g, req, out, timelineFile), req, args)
		}
		prove.AddCommand(c)
	}
	return prove
}

// proveRequest proves, and writes the proof before anything else that could fail.
// Where it goes is opened first: no proof is lost for want of a place.
func proveRequest(c *cobra.Command, s streams, g *globals, req shared.Request, out, timelineFile string) error {
	ctx := c.Context()
	proofTo, err := newOutputIf(out)
	if err != nil {
		return err
	}
	defer proofTo.discard()
	timelineTo, err := newOutputIf(timelineFile)
	if err != nil {
		return err
	}
	defer timelineTo.discard()
	plugin, err := startPlugin(ctx, s, g)
	if err != nil {
		return err
	}
	defer plugin.stop()

	bar := newProgress(s.err, req.Kind.String())
	result, err := plugin.Prove(ctx, req, bar.report)
	bar.close()
	if err != nil {
		return err
	}
	text := hex.EncodeToString(result.Proof)
	if proofTo != nil {
		err = proofTo.commit(func(w io.Writer) error {
			_, err := w.Write(result.Proof)
			return err
		})
	} else {
		_, err = fmt.Fprintln(s.out, text)
	}
	if err != nil {
		// The proof has cost minutes: what takes it is standard error.
		return fmt.Errorf("%w; the proof is %s", err, text)
	}
	recording, err := plugin.Timeline(ctx)
	if err != nil {
		return fmt.Errorf("the proof is written, but the timeline is not to be had: %w", err)
	}
	printResult(s, req, result, recording)
	if timelineTo == nil {
		return nil
	}
	if len(recording.Events) == 0 {
		return errors.New("the proof is written, but there is no timeline: the configuration switches it off (timeline { events })")
	}
	return timelineTo.commit(recording.WriteText)
}

// newOutputIf is newOutput for a path, and nil for none.
func newOutputIf(path string) (*outputFile, error) {
	if path == "" {
		return nil, nil
	}
	return newOutput(path)
}

// printResult says on standard error what was done, how long each phase took
// and how busy the device was.
func printResult(s streams, req shared.Request, r shared.Result, recording timeline.Recording) {
	t := r.Timings
	fmt.Fprintf(s.err, "%s: %d partition(s), %d bytes, verified, in %s\n", req.Kind, r.Partitions, len(r.Proof), round(t.Total))
	fmt.Fprintf(s.err, "  queue %s, parameters %s, witness %s, prepare %s, device %s, finish %s, verify %s\n",
		round(t.Queue), round(t.Params), round(t.Witness), round(t.Prepare), round(t.Device), round(t.Finish), round(t.Verify))
	for _, gpu := range timeline.Analyze(recording.Events).GPUs {
		fmt.Fprintf(s.err, "  efficiency of %s: %.1f %% over %d device phase(s)\n", gpu.Name, 100*gpu.Device.Efficiency(), gpu.Partitions)
	}
	if r.Margin > 0 {
		fmt.Fprintf(s.err, "  %s before the deadline\n", round(r.Margin))
	}
	if r.InsecureParams {
		fmt.Fprintln(s.err, "  INSECURE: made with development parameters, whose secret is public: anyone can forge such proofs")
	}
}

// round keeps three or four digits of a duration.
func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	default:
		return d.Round(time.Microsecond)
	}
}
