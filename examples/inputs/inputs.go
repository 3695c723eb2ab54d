// Package inputs holds real inputs of test size: sectors of 2 KiB and their
// vanilla proofs, for the demo, the benchmarks and whoever wants to try the
// system. Each folder's case.json says what a caller would know.
package inputs

import (
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/interlock-prover/interlock/shared"
)

//go:embed winning-2KiB window-2KiB porep-2KiB update-2KiB
var files embed.FS

// Case is what a case.json says.
type Case struct {
	Kind       string            `json:"kind"`
	SectorSize shared.SectorSize `json:"sector_size"`
	MinerID    uint64            `json:"miner_id"`
	APIVersion string            `json:"api_version"`
	Randomness string            `json:"randomness"`
	Sectors    []struct {
		SectorNumber uint64 `json:"sector_number"`
		VanillaProof string `json:"vanilla_proof"`
	} `json:"sectors"`

	// Of updates.
	CommROld      string   `json:"comm_r_old"`
	CommRNew      string   `json:"comm_r_new"`
	CommDNew      string   `json:"comm_d_new"`
	VanillaProofs []string `json:"vanilla_proofs"`
}

func read(name string) (c Case, err error) {
	raw, err := files.ReadFile(path.Join(name, "case.json"))
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// Update returns the request of an update's case: "update-2KiB".
func Update(name string) (shared.Request, error) {
	c, err := read(name)
	if err != nil {
		return shared.Request{}, err
	}
	r := shared.Request{Kind: shared.KindUpdate, SectorSize: c.SectorSize}
	for _, comm := range []struct {
		to   *[]byte
		text string
	}{{&r.CommROld, c.CommROld}, {&r.CommRNew, c.CommRNew}, {&r.CommDNew, c.CommDNew}} {
		if *comm.to, err = hex.DecodeString(comm.text); err != nil {
			return shared.Request{}, fmt.Errorf("%s: commitment: %w", name, err)
		}
	}
	for _, file := range c.VanillaProofs {
		vanilla, err := files.ReadFile(path.Join(name, file))
		if err != nil {
			return shared.Request{}, err
		}
		r.Vanilla = append(r.Vanilla, vanilla)
	}
	return r, nil
}

// PoSt returns the request of a winning or window case: "winning-2KiB" or
// "window-2KiB".
func PoSt(name string) (shared.Request, error) {
	c, err := read(name)
	if err != nil {
		return shared.Request{}, err
	}
	r := shared.Request{SectorSize: c.SectorSize, MinerID: c.MinerID, APIVersion: c.APIVersion}
	switch c.Kind {
	case "winning":
		r.Kind = shared.KindWinningPoSt
	case "window":
		r.Kind = shared.KindWindowPoSt
	default:
		return shared.Request{}, fmt.Errorf("%s: kind %q is no proof of spacetime", name, c.Kind)
	}
	if r.Randomness, err = hex.DecodeString(c.Randomness); err != nil {
		return shared.Request{}, fmt.Errorf("%s: randomness: %w", name, err)
	}
	for _, s := range c.Sectors {
		vanilla, err := files.ReadFile(path.Join(name, s.VanillaProof))
		if err != nil {
			return shared.Request{}, err
		}
		r.Vanilla = append(r.Vanilla, vanilla)
	}
	return r, nil
}

// Extract writes the files of a case to a new folder of its name under dir, and
// returns that folder.
func Extract(name, dir string) (string, error) {
	entries, err := fs.ReadDir(files, name)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	for _, e := range entries {
		data, err := files.ReadFile(path.Join(name, e.Name()))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o644); err != nil {
			return "", err
		}
	}
	return to, nil
}
