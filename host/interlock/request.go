package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/interlock-prover/interlock/shared"
)

// requestFlags are the flags that describe what is proven; prove and verify have
// the same ones.
type requestFlags struct {
	kind       shared.Kind
	sectorSize string
	miner      uint64
	sector     uint64
	randomness string
	apiVersion string
	partition  uint32
	priority   string
	deadline   time.Duration
	commROld   string
	commRNew   string
	commDNew   string

	flags *pflag.FlagSet
}

// kindUse is the command line of each kind after its name.
var kindUse = map[shared.Kind]string{
	shared.KindPoRep:       "porep C1.json",
	shared.KindWinningPoSt: "winning-post VANILLA.bin",
	shared.KindWindowPoSt:  "window-post VANILLA.bin...",
	shared.KindUpdate:      "update VANILLA.bin...",
}

// kindShort says what each kind is.
var kindShort = map[shared.Kind]string{
	shared.KindPoRep:       "PoRep of a sector, from its phase-1 output (C1, either JSON form)",
	shared.KindWinningPoSt: "winning PoSt, from the vanilla proof of the chosen sector",
	shared.KindWindowPoSt:  "window PoSt, from the vanilla proofs of its sectors in any order",
	shared.KindUpdate:      "sector update (SnapDeals), from the vanilla proofs of its partitions in order",
}

// newKindCommand makes the subcommand for one kind with the flags it has.
func newKindCommand(kind shared.Kind, verb string) (*cobra.Command, *requestFlags) {
	c := &cobra.Command{Use: kindUse[kind], Short: verb + " a " + kindShort[kind]}
	r := &requestFlags{kind: kind, flags: c.Flags()}
	f := c.Flags()
	switch kind {
	case shared.KindPoRep, shared.KindWinningPoSt:
		c.Args = cobra.ExactArgs(1)
	default:
		c.Args = cobra.MinimumNArgs(1)
	}
	required := func(names ...string) {
		for _, name := range names {
			if err := c.MarkFlagRequired(name); err != nil {
				panic(err) // the flag is defined above
			}
		}
	}
	if kind == shared.KindPoRep {
		f.StringVar(&r.sectorSize, "sector-size", "", "`SIZE` the C1 must have (default: what it says)")
		f.Uint64Var(&r.miner, "miner-id", 0, "miner actor `N`; with it and the sector number the replica id is checked")
		f.Uint64Var(&r.sector, "sector", 0, "sector number `N` (default: the one in the C1's wrapper)")
		return c, r
	}
	f.StringVar(&r.sectorSize, "sector-size", "", "sector `SIZE`, such as 32GiB")
	required("sector-size")
	if kind.IsPoSt() {
		f.Uint64Var(&r.miner, "miner-id", 0, "miner actor `N`; vanilla proofs of spacetime do not depend on it")
		f.StringVar(&r.randomness, "randomness", "", "the challenge's randomness, 32 bytes in `HEX`")
		required("miner-id", "randomness")
	}
	if kind == shared.KindWindowPoSt {
		f.StringVar(&r.apiVersion, "api-version", shared.APIVersion120, "proofs API `VERSION`, which decides how challenges are indexed: 1.0.0, 1.1.0 or 1.2.0")
		f.Uint32Var(&r.partition, "partition", 0, "the files are those of partition `K` alone (default: all partitions)")
	}
	if kind == shared.KindUpdate {
		f.StringVar(&r.commROld, "comm-r-old", "", "comm_r before the update, `HEX`")
		f.StringVar(&r.commRNew, "comm-r-new", "", "comm_r after the update, `HEX`")
		f.StringVar(&r.commDNew, "comm-d-new", "", "comm_d of the new data, `HEX`")
		required("comm-r-old", "comm-r-new", "comm-d-new")
	}
	return c, r
}

// request reads the files and builds the request.
func (r *requestFlags) request(files []string) (shared.Request, error) {
	req := shared.Request{Kind: r.kind, MinerID: r.miner, APIVersion: r.apiVersion}
	var err error
	if r.sectorSize != "" {
		if req.SectorSize, err = shared.ParseSectorSize(r.sectorSize); err != nil {
			return req, wrongUse("--sector-size: %v", err)
		}
	}
	if r.flags.Changed("sector") {
		req.SectorNumber = &r.sector
	}
	if r.flags.Changed("partition") {
		req.Partition = &r.partition
	}
	if r.priority != "" {
		if req.Priority, err = shared.ParsePriority(r.priority); err != nil {
			return req, wrongUse("--priority: %v", err)
		}
	}
	if r.deadline != 0 {
		if r.deadline < 0 {
			return req, wrongUse("--deadline: %v is in the past", r.deadline)
		}
		req.Deadline = time.Now().Add(r.deadline)
	}
	for _, h := range []struct {
		flag, text string
		dst        *[]byte
	}{
		{"randomness", r.randomness, &req.Randomness},
		{"comm-r-old", r.commROld, &req.CommROld},
		{"comm-r-new", r.commRNew, &req.CommRNew},
		{"comm-d-new", r.commDNew, &req.CommDNew},
	} {
		if *h.dst, err = parseHex32(h.text); err != nil {
			return req, wrongUse("--%s: %v", h.flag, err)
		}
	}
	if r.kind == shared.KindPoRep && r.flags.Changed("miner-id") && r.miner == 0 {
		return req, wrongUse("--miner-id: 0 is no miner; leave the flag out if the replica id is not to be checked")
	}
	for _, file := range files {
		data, err := readFile(file, shared.MaxVanillaBytes(r.kind))
		if err != nil {
			return req, err
		}
		req.Vanilla = append(req.Vanilla, data)
	}
	return req, asUsage(req.Validate())
}

// inFile adds to a fault of a vanilla proof, which the prover knows by its number, the file that it came from and what
// that was read as.
func inFile(err error, req shared.Request, files []string) error {
	var invalid *shared.InvalidRequestError
	if !errors.As(err, &invalid) {
		return err
	}
	var i int
	if n, _ := fmt.Sscanf(invalid.Field, "vanilla[%d]", &i); n != 1 || i >= len(files) {
		return err
	}
	as := "a phase-1 output"
	if req.Kind != shared.KindPoRep {
		as = fmt.Sprintf("the vanilla proof of a %s of %s", req.Kind, req.SectorSize)
	}
	return fmt.Errorf("%w (vanilla[%d] is %s, read as %s)", err, i, files[i], as)
}

// parseHex32 reads 32 bytes, or nothing from an empty text.
func parseHex32(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not hexadecimal", text)
	}
	if len(b) != 32 {
		return nil, fmt.Errorf("%d bytes, want 32", len(b))
	}
	return b, nil
}
