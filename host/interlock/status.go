package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/host/gateway"
)

// statusTimeout is how long a gateway may take to answer.
const statusTimeout = 10 * time.Second

func newStatusCommand(s streams) *cobra.Command {
	var address string
	var asJSON, watch bool
	c := &cobra.Command{
		Use:   "status",
		Short: "show what a serving prover does",
		Args:  cobra.NoArgs,
	}
	c.Flags().StringVar(&address, "http", defaultHTTPAddress, "`ADDR` that 'interlock serve --http-listen' has")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON, one line a look")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "look again every second until interrupted")
	c.RunE = func(c *cobra.Command, _ []string) error {
		for {
			snapshot, err := fetchStatus(c.Context(), address)
			if err == nil {
				err = showStatus(s, snapshot, asJSON, watch)
			}
			if !watch || err != nil {
				if c.Context().Err() != nil {
					return nil // interrupted while looking
				}
				return err
			}
			select {
			case <-time.After(time.Second):
			case <-c.Context().Done():
				return nil
			}
		}
	}
	return c
}

// fetchStatus asks a gateway over HTTP.
func fetchStatus(ctx context.Context, address string) (gateway.Snapshot, error) {
	var snapshot gateway.Snapshot
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	url, network, dialTo := "http://"+address, "tcp", address
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		url, network, dialTo = "http://unix", "unix", strings.TrimPrefix(path, "//")
	}
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, dialTo)
		},
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/status", nil)
	if err != nil {
		return snapshot, usageError{err}
	}
	reply, err := client.Do(request)
	if err != nil {
		return snapshot, fmt.Errorf("no gateway answers at %s; is 'interlock serve' running? %w", address, err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return snapshot, fmt.Errorf("%s answered %s", address, reply.Status)
	}
	if err := json.NewDecoder(io.LimitReader(reply.Body, 16<<20)).Decode(&snapshot); err != nil {
		return snapshot, fmt.Errorf("the answer of %s: %w", address, err)
	}
	return snapshot, nil
}

const clearScreen = "\x1b[H\x1b[2J"

func showStatus(s streams, snapshot gateway.Snapshot, asJSON, watch bool) error {
	if asJSON {
		return json.NewEncoder(s.out).Encode(snapshot)
	}
	if watch && isTerminal(s.out) {
		fmt.Fprint(s.out, clearScreen)
	}
	return writeStatus(s.out, snapshot)
}

// writeStatus writes a snapshot as tables.
func writeStatus(w io.Writer, snapshot gateway.Snapshot) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	state := "serving"
	switch {
	case snapshot.Error != "":
		state = "THE PROVER DOES NOT ANSWER: " + snapshot.Error
	case snapshot.Draining:
		state = "draining"
	}
	fmt.Fprintf(t, "%s\n%s, plugin %d, up %s; %d done, %d failed, %d cancelled, %d withheld, %d partitions retried; memory %s of %s\n",
		state, snapshot.Version, snapshot.PID, round(seconds(snapshot.UptimeSeconds)),
		snapshot.Completed, snapshot.Failed, snapshot.Cancelled, snapshot.Withheld, snapshot.Retries,
		size(snapshot.Memory.UsedBytes), size(snapshot.Memory.BudgetBytes))
	for _, line := range onTheCPU(snapshot) {
		fmt.Fprintln(t, line)
	}
	fmt.Fprint(t, "\nKIND\tPENDING\tIN PROGRESS\tPARTITIONS WAITING\tIN WORK\n")
	for _, q := range snapshot.Queues {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", q.Kind, q.Pending, q.InProgress, q.PartitionsPending, q.PartitionsInProgress)
	}
	fmt.Fprint(t, "\nDEVICE\tMODEL\tWORKERS\tFREE\tEFFICIENCY\tFAULTS\tHEAT\tDOES\n")
	for _, d := range snapshot.Devices {
		does := "idle"
		switch {
		case d.OutOfUse != "":
			does = "OUT OF USE: " + d.OutOfUse
		case d.Job != "":
			does = fmt.Sprintf("%s %s, partition %d", d.Kind, d.Job, d.Partition)
		}
		efficiency := "-"
		if d.Efficiency != nil {
			efficiency = fmt.Sprintf("%.1f %%", 100**d.Efficiency)
		}
		heat := "-"
		if d.Temperature != 0 {
			heat = fmt.Sprintf("%d °C", d.Temperature)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s of %s\t%s\t%d\t%s\t%s\n", d.Name, d.Model, d.Workers, size(d.MemoryFreeBytes), size(d.MemoryTotalBytes),
			efficiency, d.Faults, heat, does)
	}
	if len(snapshot.Parameters) > 0 {
		fmt.Fprint(t, "\nPARAMETERS\tSIZE\tIN\tUSERS\t\n")
	}
	for _, p := range snapshot.Parameters {
		note := ""
		if p.Insecure {
			note = "INSECURE development parameters"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", p.Circuit, size(p.Bytes), p.Where, p.Users, note)
	}
	if len(snapshot.Jobs) > 0 {
		fmt.Fprint(t, "\nREQUEST\tKIND\tPRIORITY\tSTAGE\tPARTITIONS\tELAPSED\tLEFT\tDUE IN\n")
	}
	for _, j := range snapshot.Jobs {
		left := "-"
		if j.LeftSeconds != nil {
			left = round(seconds(*j.LeftSeconds)).String()
		}
		due := "-"
		if j.DueSeconds != nil {
			due = round(seconds(*j.DueSeconds)).String()
		}
		fmt.Fprintf(t, "%s\t%s %s\t%s\t%s\t%d of %d\t%s\t%s\t%s\n", j.ID, j.Kind, j.SectorSize, j.Priority, j.Stage, j.PartitionsDone, j.Partitions,
			round(seconds(j.ElapsedSeconds)), left, due)
	}
	return t.Flush()
}

// onTheCPU says what cards left to the CPU, which is many times slower.
func onTheCPU(snapshot gateway.Snapshot) (lines []string) {
	cards, inUse := 0, 0
	for _, d := range snapshot.Devices {
		if d.Model != "CPU" {
			cards++
			if d.OutOfUse == "" {
				inUse++
			}
		}
	}
	if cards > 0 && inUse == 0 {
		lines = append(lines, "NO CARD IS IN USE")
	}
	if n := snapshot.Fallbacks; n > 0 {
		lines = append(lines, fmt.Sprintf("THE CPU PROVED %d PARTITION(S) BECAUSE NO CARD COULD", n))
	}
	return lines
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// size writes a number of bytes for people.
func size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, units[unit])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
