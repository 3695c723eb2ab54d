package gateway

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/interlock-prover/interlock/shared"
)

// metrics are what Prometheus reads of a gateway.
type metrics struct {
	registry *prometheus.Registry
	proofs   *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		proofs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "interlock_proofs_total", Help: "Requests answered, by kind of proof and result.",
		}, []string{"kind", "result"}),
	}
	m.registry.MustRegister(m.proofs)
	return m
}

// answered counts a job that has its answer.
func (m *metrics) answered(j *job) {
	result := "completed"
	switch {
	case errors.Is(j.err, shared.ErrCancelled):
		result = "cancelled"
	case j.err != nil:
		result = "failed"
	}
	m.proofs.WithLabelValues(j.kind.String(), result).Inc()
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
