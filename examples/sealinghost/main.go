// Command sealinghost is the least a sealing program does to prove with Interlock: start the plugin, hand over a
// request, get a verified proof, stop. Without flags it proves the winning PoSt of a test sector.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/shared"
)

func main() {
	var options host.Options // whatever is left empty has a default that works
	flag.StringVar(&options.PluginPath, "plugin", "", "the plugin's program; default: interlock-prover beside this one, or in the PATH")
	flag.StringVar(&options.ConfigPath, "config", "", "configuration file; default: built-in, proving on the CPU")
	flag.StringVar(&options.ParamsDir, "params", "", "parameter directory; default: as configured")
	vanilla := flag.String("vanilla", "", "vanilla proof of a sector, bincode; default: that of a test sector")
	size := flag.String("sector-size", "2KiB", "sector size")
	miner := flag.Uint64("miner-id", 0, "the miner's id")
	randomness := flag.String("randomness", "", "the election's randomness, 64 hex digits")
	flag.Parse()
	// The plugin's log comes home into yours, with levels and fields.
	options.Logger = hclog.New(&hclog.LoggerOptions{Name: "sealinghost", Level: hclog.Info, Output: os.Stderr})

	request, err := inputs.PoSt("winning-2KiB")
	if *vanilla != "" {
		request, err = read(*vanilla, *size, *miner, *randomness)
	}
	if err == nil {
		// Ending this context cancels the proof; a winning PoSt that comes too late is worth nothing anyway.
		ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer cancel()
		err = prove(ctx, options, request)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sealinghost:", err)
		os.Exit(1)
	}
}

func prove(ctx context.Context, options host.Options, request shared.Request) (err error) {
	// A sealing program starts one plugin and keeps it: parameters and compiled circuits then stay in memory.
	h, err := host.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Stop(context.Background())) }()

	// Any number of goroutines may prove at once; the plugin decides what runs when. See also Submit and Await.
	result, err := h.Prove(ctx, request, func(p shared.Progress) {
		fmt.Fprintf(os.Stderr, "%8v  %s  %d of %d partitions\n", p.Elapsed.Round(time.Millisecond), p.Stage, p.PartitionsDone, p.Partitions)
	})
	// Errors keep their type across the process boundary. The program lives on, whatever happens to the plugin.
	var died *shared.PluginDiedError
	var params *shared.ParamsError
	switch {
	case errors.As(err, &died):
		return fmt.Errorf("start a new host and prove again: %w", err)
	case errors.As(err, &params):
		return fmt.Errorf("the operator has to look after the parameters: %w", err)
	case err != nil:
		return err
	}

	// The plugin has verified the proof before it gave it out.
	fmt.Println(hex.EncodeToString(result.Proof))
	fmt.Fprintf(os.Stderr, "%d bytes, %d partition(s), insecure parameters: %v\n%+v\n",
		len(result.Proof), result.Partitions, result.InsecureParams, result.Timings)
	return nil
}

func read(path, sizeText string, miner uint64, randomnessText string) (r shared.Request, err error) {
	r = shared.Request{ID: path, Kind: shared.KindWinningPoSt, Priority: shared.PriorityCritical, MinerID: miner}
	proof, err1 := os.ReadFile(path)
	size, err2 := shared.ParseSectorSize(sizeText)
	random, err3 := hex.DecodeString(randomnessText)
	r.Vanilla, r.SectorSize, r.Randomness = [][]byte{proof}, size, random
	return r, errors.Join(err1, err2, err3)
}
