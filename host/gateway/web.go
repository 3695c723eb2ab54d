package gateway

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed page
var pageFiles embed.FS

// maxWatchers bounds the status pages that are open at once.
const maxWatchers = 64

// newWeb makes the server of metrics and status page. All it serves is to be read.
func newWeb(g *Gateway) *http.Server {
	page, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g.service.metrics.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /api/status", g.serveStatus)
	mux.HandleFunc("GET /api/events", g.serveEvents)
	mux.HandleFunc("GET /healthz", g.serveHealth)
	mux.Handle("GET /", http.FileServerFS(page))
	return &http.Server{
		Handler:           headers(mux),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          g.log.StandardLogger(nil),
	}
}

// headers lets the page load nothing but itself, and nobody frame it.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

func (g *Gateway) serveStatus(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(g.snapshot(g.observer.look(r.Context()))) // the reader has gone
}

func (g *Gateway) serveHealth(w http.ResponseWriter, r *http.Request) {
	v := g.observer.look(r.Context())
	switch {
	case g.service.book.isDraining():
		http.Error(w, "draining", http.StatusServiceUnavailable)
	case v.err != nil:
		http.Error(w, v.err.Error(), http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}

// timelineMessage is what the page learns of the timeline: what has been recorded since the message before.
type timelineMessage struct {
	StartMillis int64        `json:"start"` // wall clock of time 0
	NowMillis   float64      `json:"now"`   // since then
	Events      []eventEntry `json:"events"`
	Gaps        []gapEntry   `json:"gaps"` // all of the window
}

// eventEntry is [milliseconds, event, request, partition, device, worker].
type eventEntry [6]any

// gapEntry is [device, from, to, cause], in milliseconds.
type gapEntry [4]any

// serveEvents tells a page what goes on, as server-sent events, until it goes away.
func (g *Gateway) serveEvents(w http.ResponseWriter, r *http.Request) {
	select {
	case g.watchers <- struct{}{}:
		defer func() { <-g.watchers }()
	default:
		http.Error(w, "too many status pages are open", http.StatusServiceUnavailable)
		return
	}
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // there is nothing more to read
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	var next cursor
	for {
		v := g.observer.look(r.Context())
		if send(w, out, "status", g.snapshot(v)) != nil || send(w, out, "timeline", next.message(v)) != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		case <-g.ctx.Done():
			return
		}
	}
}

// send writes one event. A reader that takes nothing for a while is given up.
func send(w http.ResponseWriter, out *http.ResponseController, event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if err := out.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text); err != nil {
		return err
	}
	return out.Flush()
}

// cursor knows how far a page has been told.
type cursor struct {
	start time.Time
	told  uint64 // events ever recorded until there
}

// message is what a page has not been told yet.
func (c *cursor) message(v view) timelineMessage {
	rec := v.recording
	m := timelineMessage{Events: []eventEntry{}, Gaps: []gapEntry{}}
	if rec.Start.IsZero() {
		return m
	}
	if !rec.Start.Equal(c.start) {
		c.start, c.told = rec.Start, 0
	}
	m.StartMillis, m.NowMillis = rec.Start.UnixMilli(), millisOf(time.Since(rec.Start))
	skip := min(int(max(c.told, rec.Lost)-rec.Lost), len(rec.Events))
	for _, e := range rec.Events[skip:] {
		m.Events = append(m.Events, eventEntry{millisOf(e.Time), e.Kind.String(), e.Request, e.Partition, e.GPU, e.Worker})
	}
	c.told = rec.Lost + uint64(len(rec.Events))
	for _, gpu := range v.report.GPUs {
		for _, gap := range gpu.Gaps {
			m.Gaps = append(m.Gaps, gapEntry{gpu.Name, millisOf(gap.From), millisOf(gap.To), gap.Cause().String()})
		}
	}
	return m
}

// millisOf keeps microseconds, as the timeline's text does.
func millisOf(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ServeWeb answers HTTP on a listener, which it closes in the end, until Close.
func (g *Gateway) ServeWeb(l net.Listener) error {
	g.serving.Add(1)
	defer g.serving.Done()
	if err := g.web.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}

// closeWeb ends every page.
func (g *Gateway) closeWeb() {
	ctx, cancel := context.WithTimeout(context.Background(), answerGrace)
	defer cancel()
	if g.web.Shutdown(ctx) != nil {
		_ = g.web.Close()
	}
}
