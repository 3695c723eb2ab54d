// Package operating_test checks the files that operators start from.
package operating_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// secretName is what files and variables with secrets are called.
var secretName = regexp.MustCompile(`(?i)(\.(pem|key|p12|pfx|jks|kdbx)$|^\.env|^id_(rsa|ecdsa|ed25519)|^\.netrc$|^\.npmrc$|secret|token|password|credential)`)

// secretText is how keys and credentials begin.
var secretText = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----\n|AKIA[0-9A-Z]{16}|gh[pousr]_[0-9A-Za-z]{36}|://[^/\s:@"]+:[^/\s:@"$%{]+@`)

// What a container's build sees is listed, so that nothing gets in by being there; and nothing listed is a secret.
func TestContainerBuildSeesNoSecrets(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	var rules []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			rules = append(rules, line)
		}
	}
	require.Equal(t, "*", rules[0], "everything is left out")
	files := 0
	for _, rule := range rules[1:] {
		allowed, ok := strings.CutPrefix(rule, "!")
		if !ok {
			continue
		}
		require.NotContains(t, allowed, "*")
		require.NoError(t, filepath.WalkDir(filepath.Join(root, allowed), func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			if d.IsDir() {
				if d.Name() == "testdata" {
					return fs.SkipDir
				}
				return nil
			}
			files++
			require.False(t, secretName.MatchString(d.Name()) && !strings.HasSuffix(path, ".go"), "%s may be a secret", path)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Empty(t, string(secretText.Find(data)), path)
			return nil
		}))
	}
	require.Greater(t, files, 100)
}

// The image has the two programs alone, no secret in its settings, and does not run as root.
func TestContainerIsBare(t *testing.T) {
	text, err := os.ReadFile("Containerfile")
	require.NoError(t, err)
	image := text[bytes.LastIndex(text, []byte("\nFROM ")):]
	var user string
	copies := 0
	for line := range strings.Lines(string(image)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "USER":
			user = rest
		case "ADD":
			t.Errorf("the image takes more than programs: %s", line)
		case "COPY":
			copies++
			require.Equal(t, "--from=build /src/bin/interlock /src/bin/interlock-prover /usr/bin/", rest)
		case "ENV", "ARG":
			require.False(t, secretName.MatchString(rest), line)
		}
	}
	require.Equal(t, 1, copies)
	require.NotContains(t, []string{"", "root", "0"}, user)
	require.NotRegexp(t, `(?i)arg\s+\S*(secret|token|password|credential)`, string(text))
}

func TestSecretsAreRecognised(t *testing.T) {
	for _, name := range []string{"server.key", ".env", ".env.local", "id_ed25519", "tls.pem", "api-token.txt"} {
		require.True(t, secretName.MatchString(name), name)
	}
	for _, text := range []string{"-----BEGIN EC PRIVATE KEY-----\nab", "https://me:hunter2@example.com/"} {
		require.True(t, secretText.MatchString(text), text)
	}
}
