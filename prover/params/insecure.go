package params

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"sync"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/groth16"
)

// toxicWaste are the secrets of a trusted setup. A real one destroys them.
type toxicWaste struct {
	alpha, beta, gamma, delta, tau fr.Element
}

// devWaste returns the published waste of all development parameters. Whoever
// reads this can forge proofs for them.
func devWaste() *toxicWaste {
	return &toxicWaste{
		alpha: labelled("dev parameters: alpha"),
		beta:  labelled("dev parameters: beta"),
		gamma: labelled("dev parameters: gamma"),
		delta: labelled("dev parameters: delta"),
		tau:   labelled("dev parameters: tau"),
	}
}

// labelled is SHA-256(label), the two top bits of its last byte cleared, as a
// little-endian field element.
func labelled(label string) fr.Element {
	b := sha256.Sum256([]byte(label))
	b[len(b)-1] &= 0x3f
	x, err := fr.LittleEndian.Element(&b)
	if err != nil { // cannot be: 254 bits are below the modulus
		panic(fmt.Sprintf("params: label %q gives no field element: %v", label, err))
	}
	return x
}

// header returns the points of the verifying key that depend on the waste alone.
func (w *toxicWaste) header() groth16.VerifyingKey {
	_, _, g1, g2 := bls12381.Generators()
	var vk groth16.VerifyingKey
	var s big.Int
	vk.AlphaG1.ScalarMultiplication(&g1, w.alpha.BigInt(&s))
	vk.BetaG1.ScalarMultiplication(&g1, w.beta.BigInt(&s))
	vk.BetaG2.ScalarMultiplication(&g2, w.beta.BigInt(&s))
	vk.GammaG2.ScalarMultiplication(&g2, w.gamma.BigInt(&s))
	vk.DeltaG1.ScalarMultiplication(&g1, w.delta.BigInt(&s))
	vk.DeltaG2.ScalarMultiplication(&g2, w.delta.BigInt(&s))
	return vk
}

var devHeader = sync.OnceValue(func() groth16.VerifyingKey { return devWaste().header() })

// IsInsecureVK says whether any point of the key comes from the published waste
// of development parameters: proofs for such a key can be forged.
func IsInsecureVK(vk *groth16.VerifyingKey) bool {
	dev := devHeader()
	return vk.AlphaG1 == dev.AlphaG1 || vk.BetaG1 == dev.BetaG1 || vk.BetaG2 == dev.BetaG2 ||
		vk.GammaG2 == dev.GammaG2 || vk.DeltaG1 == dev.DeltaG1 || vk.DeltaG2 == dev.DeltaG2
}

// IsInsecure says whether a parameter file or verifying key is a development
// one. It looks at the points, not at the name or the label beside it, so it
// recognises copies. Errors are of type *Error.
func IsInsecure(path string) (bool, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, vkHeaderBytes)
	if n, err := io.ReadFull(f, head); err != nil {
		return false, &Error{Path: path, Remedy: remedyReplace, Err: err,
			Reason: fmt.Sprintf("truncated within the verifying key: expected at least %d bytes, found %d", vkHeaderBytes, n)}
	}
	vk, err := parseVKHeader(head, decodeG1, decodeG2)
	if err != nil {
		return false, &Error{Path: path, Reason: "verifying key: " + err.Error(), Remedy: remedyReplace, Err: err}
	}
	return IsInsecureVK(vk), nil
}

// label is what the .insecure file beside development parameters says. The
// parameter format itself has no room for it.
type label struct {
	Insecure     bool   `json:"insecure"`
	Warning      string `json:"warning"`
	ParameterSet string `json:"parameter_set"`
	Kind         string `json:"kind"`
	SectorSize   string `json:"sector_size"`
	ParamsSHA256 string `json:"params_sha256"`
	VKSHA256     string `json:"vk_sha256"`
}

const warning = "Development parameters made from published toxic waste: anybody can forge proofs for them. Never use them where a proof must mean something."

func (s Set) label(r *SetupReport) ([]byte, error) {
	b, err := json.MarshalIndent(label{
		Insecure: true, Warning: warning,
		ParameterSet: s.ID, Kind: s.Kind, SectorSize: s.SectorSize,
		ParamsSHA256: r.ParamsSHA256, VKSHA256: r.VKSHA256,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", s.ID, err)
	}
	return append(b, '\n'), nil
}
