package gateway

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/interlock-prover/interlock/shared"
)

// metrics are what Prometheus reads of a gateway.
type metrics struct {
	registry *prometheus.Registry
	proofs   *prometheus.CounterVec
	phases   *prometheus.HistogramVec
	margins  *prometheus.HistogramVec
	late     *prometheus.CounterVec
}

// phaseBuckets reach from a hash to the proof of a sector on a slow CPU, in seconds.
var phaseBuckets = []float64{.005, .02, .1, .25, .5, 1, 2, 5, 10, 20, 45, 90, 180, 360, 900, 1800, 3600}

// marginBuckets tell apart what is narrow for the thirty seconds of a winning PoSt and the thirty minutes of a window PoSt,
// in seconds. Requests are given up at their deadline: what is far below 0 came too late, or was not given up.
var marginBuckets = []float64{-300, -60, -10, -1, 0, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1500, 1800, 3600}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		proofs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "interlock_proofs_total", Help: "Requests answered, by kind of proof and result: completed, failed or cancelled.",
		}, []string{"kind", "result"}),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "interlock_proof_phase_seconds",
			Help:    "Time that completed proofs spent in each phase; witness, prepare, device and finish added up over partitions.",
			Buckets: phaseBuckets,
		}, []string{"kind", "phase"}),
		margins: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "interlock_proof_margin_seconds",
			Help:    "Time from the answer to the deadline of requests that have one, completed or given up at it; below 0 if it had passed.",
			Buckets: marginBuckets,
		}, []string{"kind"}),
		late: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "interlock_proofs_late_total",
			Help: "Requests that missed their deadline: answered after it, given up at it, or refused because of it.",
		}, []string{"kind"}),
	}
	for _, kind := range shared.Kinds() { // a counter that appears with its first event hides that event
		for _, result := range []string{"completed", "failed", "cancelled"} {
			m.proofs.WithLabelValues(kind.String(), result)
		}
		m.late.WithLabelValues(kind.String())
	}
	m.registry.MustRegister(m.proofs, m.phases, m.margins, m.late,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// answered counts a job that has its answer.
func (m *metrics) answered(j *job) {
	if !j.kind.Valid() {
		return // taken by an earlier gateway and answered before this one looked, or no kind at all
	}
	result := "completed"
	switch {
	case errors.Is(j.err, shared.ErrCancelled):
		result = "cancelled"
	case j.err != nil:
		result = "failed"
	}
	m.proofs.WithLabelValues(j.kind.String(), result).Inc()
	late := j.late()
	if late {
		m.late.WithLabelValues(j.kind.String()).Inc()
	}
	if !j.due.IsZero() && (j.err == nil || late && j.margin <= 0) { // what was refused before its deadline has no answer
		m.margins.WithLabelValues(j.kind.String()).Observe(j.margin.Seconds())
	}
	if j.err != nil {
		return
	}
	t := j.result.Timings
	for phase, took := range map[string]time.Duration{
		"queue": t.Queue, "params": t.Params, "witness": t.Witness, "prepare": t.Prepare, "device": t.Device,
		"finish": t.Finish, "verify": t.Verify, "total": t.Total,
	} {
		m.phases.WithLabelValues(j.kind.String(), phase).Observe(took.Seconds())
	}
}

// text is what Prometheus would read.
func (m *metrics) text() (string, error) {
	families, err := m.registry.Gather()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&out, family); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// proverCollector tells what the prover says of itself when Prometheus asks.
type proverCollector struct {
	observer *observer
	plugin   Supervised // nil: nobody restarts the prover's process
	book     *book
	uploads  *uploads
	start    time.Time
}

var _ prometheus.Collector = (*proverCollector)(nil)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("interlock_"+name, help, labels, nil)
}

var (
	descUp            = desc("up", "1 if the prover answers.")
	descBuild         = desc("build_info", "Version of the prover.", "version")
	descUptime        = desc("uptime_seconds", "Time since the gateway started.")
	descPluginUptime  = desc("plugin_uptime_seconds", "Time since the plugin process started.")
	descWithheld      = desc("proofs_withheld_total", "Proofs that did not verify and were not handed out, but made again or given up.")
	descRetries       = desc("partition_retries_total", "Partitions that were tried again because a device failed.")
	descFallbacks     = desc("partition_fallbacks_total", "Partitions that the CPU proved because no card could.")
	descRestarts      = desc("plugin_restarts_total", "Plugin processes started after the first.")
	descDeaths        = desc("plugin_deaths_in_row", "Plugin processes that ended in a row without having answered a request.")
	descRefusing      = desc("plugin_crash_loop", "1 if requests are refused because plugin processes end one after the other.")
	descUploads       = desc("uploads", "Requests that are being received.")
	descRequests      = desc("requests", "Requests under way, by kind and state: pending or in_progress.", "kind", "state")
	descPartitions    = desc("partitions", "Partitions under way, by kind and state: pending or in_progress.", "kind", "state")
	descOldest        = desc("oldest_request_seconds", "Age of the oldest request under way; 0 if there is none.", "kind")
	descMemoryBudget  = desc("memory_budget_bytes", "Memory of the host that partitions and parameters may reserve.")
	descMemoryUsed    = desc("memory_used_bytes", "Memory of the host that is reserved.")
	descDeviceUp      = desc("device_up", "1 if the device is in use, 0 if it was taken out of use.", "device", "model")
	descDeviceBusy    = desc("device_busy", "1 if a partition is in its device phase.", "device")
	descDeviceWorkers = desc("device_workers", "Workers of the device.", "device")
	descDeviceMemory  = desc("device_memory_bytes", "Memory of the device, by state: total or free.", "device", "state")
	descDeviceFaults  = desc("device_faults_total", "Times that the device failed.", "device")
	descTemperature   = desc("device_temperature_celsius", "Temperature of the card's processor; absent if it is not known.", "device")
	descEfficiency    = desc("device_efficiency_ratio", "Share of the time between the first and the last device phase of the last ten minutes in which the device was held.", "device")
	descKernel        = desc("device_kernel_efficiency_ratio", "The same of kernels, by the device's clock.", "device")
	descGaps          = desc("device_gap_seconds_total", "Idle time between device phases, by what the device waited for.", "device", "cause")
	descParams        = desc("params_bytes", "Size of a loaded parameter set, by where it is: device, memory or disk.", "circuit", "where")
	descParamsUsers   = desc("params_users", "Requests that hold a parameter set.", "circuit")
	descParamsFake    = desc("params_insecure", "1 if a loaded parameter set is for development.", "circuit")
)

// Describe implements prometheus.Collector.
func (c *proverCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descUp, descBuild, descWithheld, descRetries, descFallbacks, descRestarts, descDeaths, descRefusing, descUptime, descPluginUptime, descUploads, descRequests, descPartitions, descOldest, descMemoryBudget,
		descMemoryUsed, descDeviceUp, descDeviceBusy, descDeviceWorkers, descDeviceMemory, descDeviceFaults, descTemperature,
		descEfficiency, descKernel, descGaps,
		descParams, descParamsUsers, descParamsFake,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *proverCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	v := c.observer.look(context.Background())
	st := v.status
	gauge(descUptime, time.Since(c.start).Seconds())
	gauge(descUploads, float64(len(c.uploads.places)))
	for key, idle := range c.observer.gapsUntilNow() {
		counter(descGaps, idle.Seconds(), key.device, key.cause.String())
	}
	if c.plugin != nil {
		state := c.plugin.State()
		counter(descRestarts, float64(state.Restarts))
		gauge(descDeaths, float64(state.Deaths))
		gauge(descRefusing, number(state.Refusing))
	}
	gauge(descUp, number(v.err == nil))
	if v.err != nil {
		return // nothing that is known of the prover holds any more
	}
	gauge(descBuild, 1, st.Version)
	counter(descWithheld, float64(st.Withheld))
	counter(descRetries, float64(st.Retries))
	counter(descFallbacks, float64(st.Fallbacks))
	gauge(descPluginUptime, st.Uptime.Seconds())
	gauge(descMemoryBudget, float64(st.MemoryBudgetBytes))
	gauge(descMemoryUsed, float64(st.MemoryUsedBytes))
	for _, q := range requestQueues(st, c.book.onTheirWay()) {
		gauge(descRequests, float64(q.Pending), q.Kind.String(), "pending")
		gauge(descRequests, float64(q.InProgress), q.Kind.String(), "in_progress")
		var oldest time.Duration
		for _, j := range st.Jobs {
			if j.Kind == q.Kind {
				oldest = max(oldest, j.Elapsed)
			}
		}
		gauge(descOldest, oldest.Seconds(), q.Kind.String())
	}
	for _, q := range st.Queues {
		gauge(descPartitions, float64(q.Pending), q.Kind.String(), "pending")
		gauge(descPartitions, float64(q.InProgress), q.Kind.String(), "in_progress")
	}
	for _, d := range st.Devices {
		gauge(descDeviceUp, number(d.OutOfUse == ""), d.Name, d.Model)
		gauge(descDeviceBusy, number(d.RequestID != ""), d.Name)
		gauge(descDeviceWorkers, float64(d.Workers), d.Name)
		gauge(descDeviceMemory, float64(d.MemoryTotalBytes), d.Name, "total")
		gauge(descDeviceMemory, float64(d.MemoryFreeBytes), d.Name, "free")
		counter(descDeviceFaults, float64(d.Faults), d.Name)
		if d.TemperatureCelsius != 0 {
			gauge(descTemperature, float64(d.TemperatureCelsius), d.Name)
		}
	}
	for _, gpu := range v.report.GPUs {
		if gpu.Device.Span > 0 {
			gauge(descEfficiency, gpu.Device.Efficiency(), gpu.Name)
		}
		if gpu.Kernel.Span > 0 {
			gauge(descKernel, gpu.Kernel.Efficiency(), gpu.Name)
		}
	}
	for _, p := range st.Params {
		circuit := circuitID(p.Kind, p.SectorSize)
		gauge(descParams, float64(p.Bytes), circuit, p.Where)
		gauge(descParamsUsers, float64(p.Users), circuit)
		gauge(descParamsFake, number(p.Insecure), circuit)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
