package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// The loss of the last card ends the process with a line that says so, to the
// host and in the log file.
func TestTheLastCardsLossEndsTheProcess(t *testing.T) {
	var toHost bytes.Buffer
	file := filepath.Join(t.TempDir(), "prover.log")
	stderr := os.Stderr
	r, w, err := os.Pipe()
	require.NoError(t, err)
	os.Stderr = w // where newLogger writes for the host
	log, closeLog, err := newLogger(hclog.New(&hclog.LoggerOptions{Level: hclog.Warn}), &config.Log{Level: config.LogInfo, Format: config.LogText, File: file})
	os.Stderr = stderr
	require.NoError(t, err)

	lost := make(chan error, 1)
	lost <- errors.New("gpu 0: CUDA error 700")
	status := 0
	endWithCards(lost, nil, log, func(code int) { status = code })
	require.Equal(t, 3, status)
	require.NoError(t, w.Close())
	require.NoError(t, closeLog())
	_, err = toHost.ReadFrom(r)
	require.NoError(t, err)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, text := range []string{toHost.String(), string(written)} {
		require.Equal(t, 1, bytes.Count([]byte(text), []byte("\n")), text)
		require.Contains(t, text, "every card is lost; ending, so that a new process can take them up again")
		require.Contains(t, text, "CUDA error 700")
	}
}

// Otherwise it goes on until it is closed.
func TestCardsThatStayEndNothing(t *testing.T) {
	for _, lost := range []chan error{nil, make(chan error)} {
		closing, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			endWithCards(lost, closing, hclog.NewNullLogger(), func(int) { t.Error("it ended the process") })
		}()
		select {
		case <-done:
			t.Fatal("it did not wait")
		case <-time.After(20 * time.Millisecond):
		}
		close(closing)
		<-done
	}
}

// What is missing is reported with its remedy, as the host reads it.
func TestCardsAreReported(t *testing.T) {
	var out bytes.Buffer
	require.Zero(t, reportCards(filepath.Join(t.TempDir(), "absent.so"), &out))
	var report shared.CardsReport
	require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	require.Contains(t, report.Fault, "absent.so: it cannot be loaded")
	require.NotEmpty(t, report.Remedy)
	require.Empty(t, report.Cards)
}
