//go:build soak || conformance

package host_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

// No secret is in any log at the highest level, in what processes say, or in the name of a file: not the blinding of a
// proof, not a key of the connection, not a piece of a vanilla proof. The requests are proven, refused for a wrong hash,
// and interrupted by a plugin that dies with a report of all its goroutines.
func TestConformanceNoSecretsInLogs(t *testing.T) {
	for _, isDetached := range []bool{false, true} {
		t.Run(fmt.Sprintf("detached %t", isDetached), func(t *testing.T) {
			if isDetached {
				t.Setenv(chaosDetachEnv, "1")
			}
			noSecretsInLogs(t, isDetached)
		})
	}
}

func noSecretsInLogs(t *testing.T, isDetached bool) {
	dir := t.TempDir()
	secretsPath, pluginLog := filepath.Join(dir, "secrets"), filepath.Join(dir, "plugin.log")
	params, config := filepath.Join(dir, "params"), filepath.Join(dir, "config.hcl")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "log {\n  level = \"trace\"\n  file = %q\n}\n", pluginLog), 0o600))
	plugin, self := buildChanged(t)
	tool := hosttest.Start(t, hosttest.Options{Options: host.Options{PluginPath: plugin, ParamsDir: params}})
	window, winning := postRequest(t, tool, "window-2KiB", params), postRequest(t, tool, "winning-2KiB", params)

	w := newChaosWorldWith(t, self, func(int) []string {
		return []string{chaosPluginEnv + "=" + plugin, chaosParamsEnv + "=" + params, chaosConfigEnv + "=" + config, tellEnv + "=" + secretsPath}
	})
	w.endDetached()
	var clients sync.WaitGroup
	for i, r := range []shared.Request{winning, window, winning, window, winning} {
		r.ID = fmt.Sprint("r", i)
		clients.Go(func() { w.client(r) })
	}
	w.awaitAnswers(2)
	pid := w.plugin(w.host)
	w.hit("plugin made to report its goroutines", pid, syscall.SIGQUIT)
	clients.Wait()
	proofs := len(w.answered)
	secrets := map[string][]byte{}
	for _, name := range []string{"window-2KiB", "winning-2KiB"} {
		r, err := inputs.PoSt(name)
		require.NoError(t, err)
		for from := 0; from+pieceBytes <= len(r.Vanilla[0]); from += pieceBytes / 2 {
			if piece := r.Vanilla[0][from:][:pieceBytes]; isDistinct(piece) {
				secrets[fmt.Sprintf("bytes from %d on of the vanilla proof of %s", from, name)] = piece
			}
		}
		for _, at := range []int{len(r.Vanilla[0]) / 3, len(r.Vanilla[0]) / 2, len(r.Vanilla[0]) - 20} {
			wrong := r
			wrong.ID, wrong.Vanilla = fmt.Sprintf("wrong-%s-%d", r.Kind, at), [][]byte{bytes.Clone(r.Vanilla[0])}
			wrong.Vanilla[0][at] ^= 1
			reply, ok := w.host.call(chaosCall{ID: wrong.ID, Request: &wrong})
			require.True(t, ok && reply.Accepted, reply.Error)
			reply, ok = w.host.call(chaosCall{ID: wrong.ID})
			require.True(t, ok)
			require.Contains(t, reply.Error, "vanilla[0]", "a wrong byte %d", at)
			w.answered[wrong.ID] = reply.Error // which goes to the caller, who may log it
		}
	}
	w.plugins[w.plugin(w.host)] = true
	w.stop()

	told, err := os.ReadFile(secretsPath)
	require.NoError(t, err)
	kinds := map[string]int{}
	for line := range strings.Lines(string(told)) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		secret, err := hex.DecodeString(text)
		require.NoError(t, err)
		kinds[kind]++
		secrets[fmt.Sprint(kind, " ", kinds[kind])] = secret
	}
	require.GreaterOrEqual(t, kinds["blinding"], 2*proofs, "r and s of every proof")
	require.Positive(t, kinds["key"])
	t.Logf("%d secrets: %v and pieces of vanilla proofs", len(secrets), kinds)

	logs := map[string][]byte{}
	paths := []string{pluginLog, filepath.Join(w.dir, "log")}
	if isDetached {
		paths = append(paths, filepath.Join(w.journal, "plugin", "plugin.log"))
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotEmpty(t, text, path)
		logs[path] = text
	}
	all := bytes.Join(slices.Collect(maps.Values(logs)), nil)
	require.Contains(t, string(all), "opened parameters")
	require.Contains(t, string(all), "SIGQUIT", "the report of a plugin's end")
	for id, answer := range w.answered {
		if strings.HasPrefix(id, "wrong-") {
			logs["the answer to "+id] = []byte(answer)
		}
	}
	require.NoError(t, filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, err error) error {
		logs["the name "+path] = []byte(path)
		return err
	}))
	for name, secret := range secrets {
		for form, text := range formsOf(secret) {
			for where, log := range logs {
				if bytes.Contains(log, text) {
					t.Errorf("%s has %s, %s", where, name, form)
				}
			}
		}
	}
	t.Logf("%d bytes of logs", len(all))
}

// A secret is found in every form in which it could be written.
func TestConformanceSecretsAreFound(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789ABCDEF")
	reversed := bytes.Clone(secret)
	slices.Reverse(reversed)
	for _, text := range []string{
		string(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprintf("%x", reversed), fmt.Sprintf("%d", secret),
		fmt.Sprint([]any{secret}), fmt.Sprintf("%q", []string{string(secret)}), fmt.Sprintf("%#v", secret), fmt.Sprint(new(big.Int).SetBytes(secret)),
		base64.StdEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(append([]byte("x"), secret...)),
		base64.StdEncoding.EncodeToString(append(append([]byte("xy"), secret...), "zzz"...)),
	} {
		isFound := false
		for _, form := range formsOf(secret) {
			isFound = isFound || strings.Contains(text, string(form))
		}
		require.True(t, isFound, text)
	}
}

// pieceBytes is the length of the pieces of a vanilla proof that are looked for. They overlap by half, so that there is one
// in every node of a tree.
const pieceBytes = 16

// isDistinct tells that a piece of a proof is not mostly one byte, as lengths and padding are.
func isDistinct(piece []byte) bool {
	seen := map[byte]bool{}
	for _, b := range piece {
		seen[b] = true
	}
	return len(seen) > len(piece)/2
}

// formsOf gives the texts by which a secret would be recognised.
func formsOf(secret []byte) map[string][]byte {
	reversed := bytes.Clone(secret)
	slices.Reverse(reversed)
	forms := map[string][]byte{
		"as a number": []byte(new(big.Int).SetBytes(secret).String()), "as a number, the last byte first": []byte(new(big.Int).SetBytes(reversed).String()),
	}
	for order, b := range map[string][]byte{"": secret, ", the last byte first": reversed} {
		forms["raw"+order] = b
		forms["hex"+order] = []byte(hex.EncodeToString(b))
		forms["upper-case hex"+order] = bytes.ToUpper([]byte(hex.EncodeToString(b)))
		forms["as a list"+order] = []byte(strings.Trim(fmt.Sprintf("%d", b), "[]"))
		forms["as a list of Go"+order] = []byte(strings.Trim(strings.TrimPrefix(fmt.Sprintf("%#v", b), "[]byte"), "{}"))
		for skip := range 3 { // bytes before it, in the same text
			for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64 of URLs": base64.RawURLEncoding} {
				text := encoding.EncodeToString(append(make([]byte, skip), b...))
				forms[fmt.Sprintf("%s, shifted by %d%s", name, skip, order)] = []byte(text[(8*skip+5)/6 : len(text)-2])
			}
		}
	}
	return forms
}

// tellEnv names the file to which the programs of buildChanged write their secrets.
const tellEnv = "INTERLOCK_TEST_SECRETS"

// tellingFiles have a program write every blinding and every private key to a file too.
func tellingFiles(t *testing.T) map[string]string {
	blinding := filepath.Join(filepath.Dir(goTool(t, "env", "GOMOD")), "prover", "groth16", "blinding.go")
	ecdsa := filepath.Join(goTool(t, "env", "GOROOT"), "src", "crypto", "ecdsa")
	const tell = `
import "os"

func tell(kind, secret string) {
	path := os.Getenv("` + tellEnv + `")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = f.WriteString(kind + " " + secret + "\n")
	}
	if err != nil {
		panic(err)
	}
	_ = f.Close()
}
`
	return map[string]string{
		blinding: edited(t, blinding, "\treturn b, nil\n", `
	for _, x := range []*fr.Element{&b.r, &b.s} {
		bytes := x.Bytes()
		tell("blinding", fmt.Sprintf("%x", bytes))
	}
	return b, nil
`),
		filepath.Join(filepath.Dir(blinding), "tell_secrets.go"): "package groth16\n" + tell,
		filepath.Join(ecdsa, "ecdsa.go"):                         edited(t, filepath.Join(ecdsa, "ecdsa.go"), "\nfunc GenerateKey(", "\nfunc generateUntold("),
		filepath.Join(ecdsa, "tell_secrets.go"): "package ecdsa\n" + strings.Replace(tell, `import "os"`, "import (\n\"crypto/elliptic\"\n\"fmt\"\n\"io\"\n\"os\"\n)", 1) + `
func GenerateKey(c elliptic.Curve, r io.Reader) (*PrivateKey, error) {
	key, err := generateUntold(c, r)
	if err == nil {
		tell("key", fmt.Sprintf("%x", key.D.Bytes()))
	}
	return key, err
}
`,
	}
}
