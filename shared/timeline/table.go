package timeline

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteText writes the report as tables for people: phases, GPUs, then the gaps of each GPU by length and cause.
func (r Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "run\t%s\t\n", seconds(r.Duration))
	fmt.Fprintf(t, "\nphase\tcount\ttotal\tmean\tlongest\t\n")
	for _, p := range r.Phases {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t\n", p.Start.phaseName(), p.Count, seconds(p.Total), seconds(p.Total/time.Duration(p.Count)), seconds(p.Max))
	}
	fmt.Fprintf(t, "\nGPU\tdevice phases\tbusy\tof\tGPU efficiency\tkernels busy\tkernel efficiency\t\n")
	for _, g := range r.GPUs {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t", g.Name, g.Partitions, seconds(g.Device.Busy), seconds(g.Device.Span), percent(g.Device))
		if g.Kernel.Span == 0 {
			fmt.Fprintf(t, "-\t-\t\n")
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t\n", seconds(g.Kernel.Busy), percent(g.Kernel))
	}
	for _, g := range r.GPUs {
		g.writeGaps(t)
	}
	return t.Flush()
}

func (g GPUReport) writeGaps(w io.Writer) {
	fmt.Fprintf(w, "\ngaps of %s\tcount\ttotal\t", g.Name)
	for _, name := range causeNames {
		fmt.Fprintf(w, "%s\t", name)
	}
	fmt.Fprintln(w)
	rows := g.GapTable()
	var all GapRow
	for class, row := range rows {
		row.write(w, classNames[class])
		all.add(row.Count, row.Total, row.ByCause)
	}
	all.write(w, "all")
}

// GapRow sums up gaps of one class of length.
type GapRow struct {
	Count   int
	Total   time.Duration
	ByCause [numCauses]time.Duration // sums to Total
}

// GapTable has a row for each class of length, shortest first.
func (g GPUReport) GapTable() [numClasses]GapRow {
	var rows [numClasses]GapRow
	for _, gap := range g.Gaps {
		rows[gap.Class()].add(1, gap.Length(), gap.ByCause)
	}
	return rows
}

func (r *GapRow) add(count int, total time.Duration, byCause [numCauses]time.Duration) {
	r.Count += count
	r.Total += total
	for c, d := range byCause {
		r.ByCause[c] += d
	}
}

func (r GapRow) write(w io.Writer, name string) {
	fmt.Fprintf(w, "%s\t%d\t%s\t", name, r.Count, seconds(r.Total))
	for _, d := range r.ByCause {
		fmt.Fprintf(w, "%s\t", seconds(d))
	}
	fmt.Fprintln(w)
}

// phaseName is the kind's name without _START.
func (k Kind) phaseName() string {
	name := k.String()
	return name[:len(name)-len("_START")]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

func percent(u Usage) string { return fmt.Sprintf("%.1f %%", 100*u.Efficiency()) }
