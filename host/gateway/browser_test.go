//go:build browser

package gateway

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// twoCards is the recording of two cards with two workers each that proved for four minutes and still do. Every fourth
// partition of the second card waits for its witness.
func twoCards() timeline.Recording {
	const length = 240 * time.Second
	rec := timeline.Recording{Start: time.Now().Add(-length - 5*time.Second).Round(0)}
	event := func(at time.Duration, kind timeline.Kind, partition int, gpu string, worker int) {
		if at <= length {
			rec.Events = append(rec.Events, timeline.Event{
				Time: at, Kind: kind, Request: fmt.Sprintf("porep-1000-%d.0123456789ab", partition/10), Partition: int32(partition % 10),
				GPU: gpu, Worker: int32(worker),
			})
		}
	}
	for card := range 2 {
		gpu := fmt.Sprintf("gpu-%d", card)
		at := 6 * time.Second
		for n := 0; at < length; n++ {
			partition, worker := n*2+card, n%2
			if card == 1 && n%4 == 3 {
				at += 3 * time.Second
			}
			event(at-5*time.Second, timeline.SynthStart, partition, "", card)
			event(at-800*time.Millisecond, timeline.SynthEnd, partition, "", card)
			event(at-800*time.Millisecond, timeline.GPUQueue, partition, "", timeline.None)
			event(at-600*time.Millisecond, timeline.GPUPickup, partition, gpu, worker)
			event(at-600*time.Millisecond, timeline.PrepareStart, partition, gpu, worker)
			event(at-100*time.Millisecond, timeline.PrepareEnd, partition, gpu, worker)
			event(at, timeline.GPUStart, partition, gpu, worker)
			event(at+2*time.Second, timeline.GPUEnd, partition, gpu, worker)
			event(at+2*time.Second, timeline.FinishStart, partition, gpu, worker)
			event(at+2900*time.Millisecond, timeline.FinishEnd, partition, gpu, worker)
			at += 2*time.Second + 5*time.Millisecond
		}
	}
	slices.SortStableFunc(rec.Events, func(a, b timeline.Event) int { return int(a.Time - b.Time) })
	return rec
}

func twoCardsProver() *fakeProver {
	f := newFakeProver()
	f.timeline = twoCards()
	f.status = shared.Status{
		Version: "v0.9.0", PID: 4711, MemoryBudgetBytes: 400 << 30, MemoryUsedBytes: 123 << 30,
		Devices: []shared.DeviceStatus{
			{Name: "gpu-0", Model: "NVIDIA H200", Workers: 2, MemoryTotalBytes: 139 << 30, MemoryFreeBytes: 31 << 30, RequestID: "porep-1000-11.0123456789ab", Kind: shared.KindPoRep, Partition: 8, TemperatureCelsius: 63},
			{Name: "gpu-1", Model: "NVIDIA H200", Workers: 2, MemoryTotalBytes: 139 << 30, MemoryFreeBytes: 139 << 30, Partition: -1, OutOfUse: "out of device memory: 12.0 GiB asked for, 3.1 GiB free", Faults: 2, TemperatureCelsius: 91},
		},
		Params: []shared.ParamsStatus{
			{Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB, Bytes: 44 << 30, Users: 2, Where: "device"},
			{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB, Bytes: 47 << 20, Where: "memory", Insecure: true},
		},
		Queues: []shared.QueueStatus{{Kind: shared.KindPoRep, Pending: 12, InProgress: 4}},
	}
	for i, stage := range []shared.Stage{shared.StageDevice, shared.StageWitness, shared.StageQueued} {
		f.status.Jobs = append(f.status.Jobs, shared.JobStatus{
			ID: shared.JobID(fmt.Sprintf("porep-1000-%d.0123456789ab", 11+i)), Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB,
			Priority: shared.PriorityNormal, Stage: stage, Partitions: 10, PartitionsDone: 8 - 4*i, Elapsed: time.Duration(20-6*i) * time.Second,
			Deadline: time.Now().Add(time.Duration(1-i) * 30 * time.Minute),
		})
	}
	return f
}

// chromium opens a tab of a headless browser of its own. What the page complains of is an error of the test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	allocator, cancel := chromedp.NewExecAllocator(testContext(t), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx)) // starts it
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page failed: %v", e.ExceptionDetails)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				t.Errorf("the browser complains: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	}))
	return ctx
}

func screenshot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	folder := filepath.Join("..", "..", "artifacts")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), png, 0o644))
}

func evaluate[R any](t *testing.T, ctx context.Context, script string) R {
	t.Helper()
	result, err := chromedp.Run(ctx, chromedp.Evaluate[R](script))
	require.NoError(t, err)
	return result
}

// openPage starts a gateway and opens its page, with the first messages shown.
func openPage(t *testing.T, f *fakeProver) context.Context {
	t.Helper()
	g, _ := serve(t, f, Options{})
	g.pace.answered(&job{kind: shared.KindPoRep, size: shared.SectorSize32GiB, result: shared.Result{Partitions: 10, Timings: shared.Timings{Total: 30 * time.Second}}})
	url := serveWeb(t, g)
	ctx := chromium(t)
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 1000), chromedp.Navigate(url), chromedp.WaitVisible("#devices li")))
	_, err := chromedp.Run(ctx, chromedp.Poll[bool](`fall.done.length > 0`))
	require.NoError(t, err)
	return ctx
}

// What the page shows of the run is the timeline: every phase with its lane, to the microsecond, and every gap with its
// cause.
func TestBrowserWaterfallIsTheTimeline(t *testing.T) {
	f := twoCardsProver()
	ctx := openPage(t, f)
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus("#waterfall"), chromedp.KeyEvent(kb.Home), chromedp.Click("details summary")))

	type phase struct {
		Lane, Name, Request, Partition string
		From, To                       float64
	}
	shown := evaluate[[]phase](t, ctx, `(() => {
		const all = inView().filter((p) => !p.running);
		return all.map((p) => ({Lane: p.lane.slice(2), Name: name(p), Request: p.request, Partition: String(p.partition), From: p.from, To: p.to}));
	})()`)
	var want []phase
	open := map[timeline.Event]time.Duration{}
	names := map[timeline.Kind]string{timeline.SynthStart: "witness", timeline.PrepareStart: "prepare", timeline.GPUStart: "device", timeline.FinishStart: "finish", timeline.GPUQueue: "queue"}
	begin := map[timeline.Kind]timeline.Kind{timeline.SynthEnd: timeline.SynthStart, timeline.PrepareEnd: timeline.PrepareStart, timeline.GPUEnd: timeline.GPUStart, timeline.FinishEnd: timeline.FinishStart, timeline.GPUPickup: timeline.GPUQueue}
	for _, e := range f.timeline.Events {
		key := e
		key.Time = 0
		if e.Kind == timeline.GPUQueue || e.Kind == timeline.GPUPickup {
			key.GPU, key.Worker = "", timeline.None
		}
		if start, ends := begin[e.Kind]; ends {
			key.Kind = start
			lane := fmt.Sprintf("%s · worker %d", e.GPU, e.Worker)
			switch start {
			case timeline.SynthStart:
				lane = fmt.Sprintf("witness %d", e.Worker)
			case timeline.GPUQueue:
				lane = "queue"
			}
			from, known := open[key]
			require.True(t, known)
			want = append(want, phase{lane, names[start], e.Request, strconv.Itoa(int(e.Partition)), millisOf(from), millisOf(e.Time)})
			continue
		}
		open[key] = e.Time
	}
	require.ElementsMatch(t, want, shown)
	require.Greater(t, len(want), 500)

	type gap struct {
		Device   string
		From, To float64
		Cause    string
	}
	shownGaps := evaluate[[]gap](t, ctx, `fall.gaps.map(([Device, From, To, Cause]) => ({Device, From, To, Cause}))`)
	var wantGaps []gap
	for _, gpu := range timeline.Analyze(f.timeline.Events).GPUs {
		for _, g := range gpu.Gaps {
			wantGaps = append(wantGaps, gap{gpu.Name, millisOf(g.From), millisOf(g.To), g.Cause().String()})
		}
	}
	require.ElementsMatch(t, wantGaps, shownGaps)

	// The drawing agrees with what is listed: a bar is where its times are.
	worst := evaluate[float64](t, ctx, `(() => {
		const box = $("waterfall").clientWidth, names = 130, scale = (box - names) / (fall.to - fall.from);
		return Math.max(...fall.boxes.map((b) => Math.abs(b.left - Math.max(names + (b.what.from - fall.from) * scale, names))));
	})()`)
	require.Less(t, worst, 0.01, "pixels")

	// The table has them too, for those who do not see the drawing.
	rows := evaluate[int](t, ctx, `$("phases").tBodies[0].rows.length`)
	require.GreaterOrEqual(t, rows, 500)
}

// All of the waterfall can be reached and moved without a mouse.
func TestBrowserKeyboard(t *testing.T) {
	ctx := openPage(t, twoCardsProver())
	width := func() float64 { return evaluate[float64](t, ctx, `Math.round(fall.to - fall.from)`) }
	press := func(key string) { require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent(key))) }

	var reached []string
	for range 12 {
		press(kb.Tab)
		reached = append(reached, evaluate[string](t, ctx, `document.activeElement.id || document.activeElement.className || document.activeElement.tagName`))
	}
	for _, id := range []string{"skip", "b-live", "b-in", "b-out", "b-left", "b-right", "waterfall", "SUMMARY"} {
		require.Contains(t, reached, id)
	}
	require.NoError(t, chromedp.Do(ctx, chromedp.Focus("#waterfall")))
	require.NotEqual(t, "none", evaluate[string](t, ctx, `getComputedStyle($("waterfall")).outlineStyle`), "focus is seen")
	require.InDelta(t, 60000, width(), 1)
	press("+")
	require.InDelta(t, 30000, width(), 1)
	press("-")
	press("-")
	require.InDelta(t, 120000, width(), 1)
	require.True(t, evaluate[bool](t, ctx, `fall.live`))
	press(kb.ArrowLeft)
	require.False(t, evaluate[bool](t, ctx, `fall.live`))
	before := evaluate[float64](t, ctx, `fall.from`)
	press(kb.ArrowRight)
	require.InDelta(t, before+30000, evaluate[float64](t, ctx, `fall.from`), 1)
	press(kb.End)
	require.True(t, evaluate[bool](t, ctx, `fall.live`))
	press(kb.Home)
	require.InDelta(t, 600000, width(), 1)
	for range 30 {
		press("+")
	}
	require.InDelta(t, 50, width(), 1)
}

// contrastScript gives the worst contrast of text with what is behind it (WCAG 2.2, 1.4.3), and whose it is.
const contrastScript = `(() => {
	const rgb = (text) => text.match(/[\d.]+/g).map(Number);
	const lum = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
	const back = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
	let worst = {Ratio: 21, Text: ""};
	for (const e of document.querySelectorAll("body *")) {
		if (e.tagName === "NOSCRIPT" || !e.offsetParent || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
		const a = lum(rgb(getComputedStyle(e).color)), b = lum(back(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < worst.Ratio) worst = {Ratio: ratio, Text: e.textContent.trim().slice(0, 60)};
	}
	return worst;
})()`

// The page is readable in light and dark, on a desk and on a telephone.
func TestBrowserLooks(t *testing.T) {
	ctx := openPage(t, twoCardsProver())
	paint := evaluate[float64](t, ctx, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	loaded := evaluate[float64](t, ctx, `performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).filter((r) => !r.name.includes("api/")).reduce((n, r) => n + r.transferSize, 0)`)
	t.Logf("first contentful paint after %.0f ms, %.1f KB loaded", paint, loaded/1000)
	require.Less(t, loaded, 200e3)
	require.Less(t, paint, 1000.0)

	for _, scheme := range []string{"light", "dark"} {
		for _, screen := range []struct {
			name          string
			width, height int64
			scale         float64
		}{{"desk", 1280, 1000, 1}, {"phone", 390, 844, 2}} {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			require.NoError(t, err)
			require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(screen.width, screen.height, chromedp.EmulateScale(screen.scale))))
			require.True(t, evaluate[bool](t, ctx, `draw() === undefined`))
			worst := evaluate[struct {
				Ratio float64
				Text  string
			}](t, ctx, contrastScript)
			t.Logf("%s, %s: contrast at least %.1f (%q)", screen.name, scheme, worst.Ratio, worst.Text)
			require.GreaterOrEqual(t, worst.Ratio, 4.5, worst.Text)
			over := evaluate[float64](t, ctx, `document.documentElement.scrollWidth - window.innerWidth`)
			require.LessOrEqual(t, over, 0.0, "nothing sticks out to the side")
			small := evaluate[float64](t, ctx, `Math.min(...[...document.querySelectorAll("button")].map((b) => Math.min(b.offsetWidth, b.offsetHeight)))`)
			require.GreaterOrEqual(t, small, 44.0, "buttons are fit for a finger")
			screenshot(t, ctx, fmt.Sprintf("status-%s-%s.png", screen.name, scheme))
		}
	}
}

// What cards suffer is seen, and that the CPU proves in their place is said loudly.
func TestBrowserCards(t *testing.T) {
	f := twoCardsProver()
	ctx := openPage(t, f)
	devices := func() string { return evaluate[string](t, ctx, `$("devices").innerText`) }
	for _, text := range []string{"63 °C", "91 °C", "OUT OF USE: out of device memory", "failed 2 times"} {
		require.Contains(t, devices(), text)
	}
	require.True(t, evaluate[bool](t, ctx, `$("fallback").hidden`))

	f.mu.Lock()
	f.status.Retries, f.status.Fallbacks = 5, 3
	f.status.Devices = slices.Clone(f.status.Devices) // the old ones may be being read
	f.status.Devices[0].OutOfUse = "gpu 0: the device is lost until the process is started anew"
	f.mu.Unlock()
	require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible("#fallback")))
	text := evaluate[string](t, ctx, `$("fallback").textContent`)
	require.Contains(t, text, "No card is in use: gpu-0: gpu 0: the device is lost")
	require.Contains(t, text, "The CPU proved 3 partitions because no card could")
	require.Equal(t, "5", evaluate[string](t, ctx, `$("n-retries").textContent`))
	screenshot(t, ctx, "status-fallback.png")
}

// A prover that is gone is told of, in words, and what was known before stays.
func TestBrowserProverLost(t *testing.T) {
	f := twoCardsProver()
	ctx := openPage(t, f)
	count := evaluate[int](t, ctx, `fall.done.length`)
	require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible(`#state[data-state=good]`)))
	f.goDown(&shared.PluginDiedError{Path: "interlock-prover", PID: 4711, Status: "signal: killed"})
	require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible("#fault"), chromedp.WaitVisible(`#state[data-state=bad]`)))
	require.Contains(t, evaluate[string](t, ctx, `$("fault").textContent`), "signal: killed")
	require.Equal(t, count, evaluate[int](t, ctx, `fall.done.length`))
}
