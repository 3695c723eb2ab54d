"use strict";
// The status page: it listens to api/events and draws what comes. Times of the timeline are milliseconds since its start.

const $ = (id) => document.getElementById(id);
const windowMs = 10 * 60 * 1000;
const shortest = 50; // milliseconds that fill the waterfall at most zoom

// ---- text

function element(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return (u === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)) + " " + units[u];
}

function duration(seconds) {
  if (seconds < 1) return Math.round(seconds * 1000) + " ms";
  if (seconds < 60) return seconds.toFixed(1) + " s";
  const s = Math.round(seconds);
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
}

// clock is the time of day of a moment of the timeline.
function clock(ms, fine) {
  const d = new Date(fall.start + ms);
  const text = d.toLocaleTimeString([], { hour12: false });
  return fine ? text + "." + String(d.getMilliseconds()).padStart(3, "0") : text;
}

// ---- status

function fill(body, rows, none) {
  if (rows.length === 0) {
    const cell = element("td", none);
    cell.colSpan = 9;
    rows = [[cell]];
  }
  body.replaceChildren(...rows.map((cells) => {
    const row = element("tr");
    row.append(...cells.map((c) => (c instanceof Element ? c : element("td", c))));
    return row;
  }));
}

function showStatus(s) {
  const count = (key) => s.queues.reduce((n, q) => n + q[key], 0);
  $("n-progress").textContent = count("in_progress");
  $("n-pending").textContent = count("pending");
  $("n-completed").textContent = s.completed;
  $("n-failed").textContent = s.failed;
  $("n-withheld").textContent = s.withheld;
  $("n-retries").textContent = s.retries;
  $("n-memory").textContent = s.memory.budget_bytes ? bytes(s.memory.used_bytes) + " of " + bytes(s.memory.budget_bytes) : "–";
  $("about").textContent = [s.version, s.pid ? "plugin " + s.pid : "", "up " + duration(s.uptime_seconds)].filter(Boolean).join(" · ");
  state(s.error ? "bad" : "good", s.error ? "prover down" : s.draining ? "draining" : "proving service up");
  tell($("fault"), s.error || "");
  tell($("fallback"), onTheCPU(s));

  fill($("jobs").tBodies[0], s.jobs.map((j) => {
    const id = element("td", j.id, "id");
    id.title = j.id;
    const parts = element("td");
    const bar = element("progress");
    bar.max = j.partitions || 1;
    bar.value = j.partitions_done;
    bar.setAttribute("aria-label", "partitions done");
    parts.append(bar, " " + (j.partitions ? j.partitions_done + " of " + j.partitions : "–"));
    const end = j.left_seconds === undefined ? "–"
      : new Date(Date.now() + 1000 * j.left_seconds).toLocaleTimeString([], { hour12: false }) + " (in " + duration(j.left_seconds) + ")";
    const due = j.due_seconds === undefined ? element("td", "–") : j.due_seconds < 0
      ? element("td", "passed " + duration(-j.due_seconds) + " ago", "bad")
      : element("td", "in " + duration(j.due_seconds), j.left_seconds > j.due_seconds ? "bad" : "");
    return [id, j.kind + " " + j.sector_size, j.priority, j.stage, parts, duration(j.elapsed_seconds), end, due];
  }), "nothing is running");

  fill($("queues").tBodies[0], s.queues.map((q) =>
    [q.kind, q.pending, q.in_progress, q.partitions_pending + " + " + q.partitions_in_progress].map(String)), "");

  $("devices").replaceChildren(...s.devices.map((d) => {
    const card = element("li");
    card.append(element("strong", d.name), " " + (d.model === d.name ? "" : d.model));
    if (d.out_of_use) card.append(element("p", "OUT OF USE: " + d.out_of_use, "bad"));
    card.append(element("p", d.job ? d.kind + " " + d.job + ", partition " + d.partition : "idle"));
    const used = d.memory_total_bytes - d.memory_free_bytes;
    const facts = [d.workers + " workers"];
    if (d.memory_total_bytes) facts.push(bytes(used) + " of " + bytes(d.memory_total_bytes) + " used");
    if (d.efficiency !== undefined) facts.push((100 * d.efficiency).toFixed(1) + " % efficiency");
    if (d.temperature_celsius) facts.push(d.temperature_celsius + " °C");
    card.append(element("p", facts.join(" · ")));
    if (d.faults) card.append(element("p", "failed " + (d.faults === 1 ? "once" : d.faults + " times"), "bad"));
    card.title = d.uuid || "";
    return card;
  }));

  $("params").replaceChildren(...(s.parameters.length ? s.parameters.map((p) => {
    const card = element("li");
    card.append(element("strong", p.circuit), " " + bytes(p.bytes) + " in " + (p.where === "device" ? "device memory" : p.where));
    card.append(element("p", p.users === 1 ? "1 request uses it" : p.users + " requests use it"));
    if (p.insecure) card.append(element("p", "INSECURE development parameters", "warn"));
    return card;
  }) : [element("li", "none loaded")]));
}

// onTheCPU says what cards left to the CPU, which is many times slower.
function onTheCPU(s) {
  const cards = s.devices.filter((d) => d.model !== "CPU");
  const lines = [];
  if (cards.length && cards.every((d) => d.out_of_use)) lines.push("No card is in use: " + cards.map((d) => d.name + ": " + d.out_of_use).join("; "));
  if (s.fallbacks) lines.push("The CPU proved " + (s.fallbacks === 1 ? "1 partition" : s.fallbacks + " partitions") + " because no card could");
  return lines.join("\n");
}

// tell shows a text, or nothing; screen readers say it when it changes.
function tell(box, text) {
  box.hidden = !text;
  if (box.textContent !== text) box.textContent = text;
}

function state(what, text) {
  $("state").dataset.state = what;
  if ($("state").textContent !== text) $("state").textContent = text;
}

// ---- timeline

const phases = {
  SYNTH: ["witness", "synth"], MEMORY_WAIT: ["waiting for memory", "queue"], PARAMS: ["waiting for parameters", "queue"],
  GPU_QUEUE: ["queue", "queue"], PREPARE: ["prepare", "prepare"], GPU: ["device", "device"], FINISH: ["finish", "finish"],
  B_G2: ["B in G2", "finish"], VERIFY: ["verify", "verify"], KERNEL: ["kernels", "device"],
};
const legend = [["witness", "synth"], ["waiting", "queue"], ["prepare", "prepare"], ["device", "device"], ["finish", "finish"], ["verify", "verify"], ["gap", "gap"]];

const fall = {
  start: 0, now: 0, at: 0, // wall clock of time 0; the time at the last message, and the page's clock then
  open: new Map(), done: [], gaps: [],
  from: -60000, to: 0, live: true, // the view; in live view it ends now
};

// moment is the present time of the timeline.
const moment = () => fall.now + (performance.now() - fall.at);

function showTimeline(m) {
  if (m.start !== fall.start) Object.assign(fall, { start: m.start, open: new Map(), done: [], gaps: [] });
  fall.now = m.now;
  fall.at = performance.now();
  fall.gaps = m.gaps;
  for (const [ms, event, request, partition, device, worker] of m.events) note(ms, event, request, partition, device, worker);
  const oldest = fall.now - windowMs;
  fall.done = fall.done.filter((p) => p.to >= oldest);
  for (const [key, starts] of fall.open) if (starts[0].from < oldest) fall.open.delete(key);
  draw();
}

// note pairs the beginning of a phase with its end.
function note(ms, event, request, partition, device, worker) {
  let phase, begins;
  let key;
  if (event === "GPU_QUEUE" || event === "GPU_PICKUP") {
    phase = "GPU_QUEUE";
    begins = event === "GPU_QUEUE";
    key = ["GPU_QUEUE", request, partition].join("\n");
  } else if (event.endsWith("_START") || event.endsWith("_END")) {
    begins = event.endsWith("_START");
    phase = event.slice(0, event.lastIndexOf("_"));
    key = [phase, request, partition, device, worker].join("\n");
  }
  if (!phases[phase]) return;
  const starts = fall.open.get(key) || [];
  if (begins) {
    starts.push({ phase, request, partition, lane: laneOf(phase, device, worker), from: ms, to: Infinity });
    fall.open.set(key, starts);
  } else if (starts.length) {
    const p = starts.pop();
    p.to = ms;
    fall.done.push(p);
    if (!starts.length) fall.open.delete(key);
  }
}

function laneOf(phase, device, worker) {
  if (phase === "GPU_QUEUE") return "2 queue";
  if (device) return "3 " + device + " · worker " + worker;
  if (phase === "SYNTH") return "1 witness " + worker;
  return "0 requests";
}

// inView lists the phases in view, running ones up to now.
function inView() {
  const now = moment();
  const all = fall.done.concat(...fall.open.values()).map((p) => (p.to === Infinity ? { ...p, to: now, running: true } : p));
  return all.filter((p) => p.to >= fall.from && p.from <= fall.to);
}

// lanes are the rows, always all of them, so that they do not jump: first of all devices' gaps, then their workers.
function lanes() {
  const names = new Set(["2 queue"]);
  for (const p of fall.done) names.add(p.lane);
  for (const starts of fall.open.values()) for (const p of starts) names.add(p.lane);
  for (const name of [...names]) if (name[0] === "3") names.add("3 " + name.slice(2).split(" · ")[0]);
  return [...names].sort();
}

const row = 26, head = 22;

// gutter is the room for the lanes' names. Where there is none, they stand over the bars.
const gutter = () => ($("waterfall").clientWidth >= 700 ? 130 : 0);

// xOf is where a moment is drawn.
const xOf = (ms) => gutter() + ((ms - fall.from) / (fall.to - fall.from)) * ($("waterfall").clientWidth - gutter());

function draw() {
  const box = $("waterfall"), canvas = $("canvas");
  if (fall.live) {
    const width = fall.to - fall.from;
    fall.to = moment();
    fall.from = fall.to - width;
  }
  const rows = lanes();
  const width = box.clientWidth, left0 = gutter(), height = head + row * rows.length + 4;
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + "px";
  }
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue("--" + name).trim();
  const x = xOf;
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";

  // The scale above: a line at each round time.
  const step = roundStep((fall.to - fall.from) / Math.max(2, (width - left0) / 110));
  const offset = fall.start - new Date(fall.start).getTimezoneOffset() * 60000;
  c.fillStyle = colour("soft");
  c.strokeStyle = colour("line");
  for (let t = Math.ceil((fall.from + offset) / step) * step - offset; t <= fall.to; t += step) {
    c.beginPath();
    c.moveTo(x(t), head - 6);
    c.lineTo(x(t), height);
    c.stroke();
    c.fillText(clock(t, step < 1000), x(t) + 3, head / 2);
  }

  const boxes = [];
  const place = new Map(rows.map((name, i) => [name, head + i * row]));
  const bar = (from, to, top, inner, what) => {
    const left = Math.max(x(from), left0), right = Math.min(x(to), width);
    const w = Math.max(right - left, 1);
    boxes.push({ left, right: left + w, top: top + inner, bottom: top + row - inner, what });
    return [left, top + inner, w, row - 2 * inner];
  };
  for (const p of inView()) {
    c.fillStyle = colour(phases[p.phase][1]);
    c.globalAlpha = p.phase === "GPU_QUEUE" || p.lane[0] === "0" ? 0.55 : 1;
    c.fillRect(...bar(p.from, p.to, place.get(p.lane), 4, p));
    c.globalAlpha = 1;
    if (p.phase === "GPU") {
      c.fillRect(...bar(p.from, p.to, place.get(p.lane.split(" · ")[0]), 8, p));
    }
  }
  for (const [device, from, to, cause] of fall.gaps) {
    const top = place.get("3 " + device);
    if (top === undefined || to < fall.from || from > fall.to) continue;
    const [left, y, w, h] = bar(from, to, top, 6, { gap: cause, from, to, lane: "3 " + device });
    c.strokeStyle = colour("gap");
    c.strokeRect(left + 0.5, y + 0.5, Math.max(w - 1, 1), h - 1);
    c.save();
    c.beginPath();
    c.rect(left, y, w, h);
    c.clip();
    c.beginPath();
    for (let d = left - h; d < left + w; d += 6) { c.moveTo(d, y + h); c.lineTo(d + h, y); }
    c.stroke();
    c.restore();
    if (c.measureText(cause).width + 8 < w) {
      c.fillStyle = colour("card");
      c.fillRect(left + 4, y + 1, c.measureText(cause).width + 4, h - 2);
      c.fillStyle = colour("gap");
      c.fillText(cause, left + 6, y + h / 2);
    }
  }
  for (const [name, top] of place) {
    const text = name.slice(2);
    if (!left0) {
      c.globalAlpha = 0.8;
      c.fillStyle = colour("card");
      c.fillRect(2, top + 5, c.measureText(text).width + 8, row - 10);
      c.globalAlpha = 1;
    }
    c.fillStyle = colour("text");
    c.fillText(text, 6, top + row / 2);
  }
  fall.boxes = boxes;
  $("span").textContent = clock(fall.from) + " to " + clock(fall.to) + ", " + duration((fall.to - fall.from) / 1000);
  $("b-live").setAttribute("aria-pressed", String(fall.live));
  if ($("phases").closest("details").open) table();
}

function roundStep(ms) {
  for (const s of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000]) if (s >= ms) return s;
  return 600000;
}

const maxRows = 500;

function table() {
  const laneRank = (p) => p.lane + String(p.from).padStart(20, "0");
  const shown = inView().concat(fall.gaps.filter((g) => g[2] >= fall.from && g[1] <= fall.to)
    .map(([device, from, to, cause]) => ({ lane: "3 " + device, gap: cause, from, to })))
    .sort((a, b) => (laneRank(a) < laneRank(b) ? -1 : 1)).slice(0, maxRows);
  fill($("phases").tBodies[0], shown.map((p) => {
    const r = [p.lane.slice(2), name(p), p.request || "", p.partition >= 0 ? String(p.partition) : "", clock(p.from, true), took(p)];
    const id = element("td", r[2], "id");
    id.title = r[2];
    r[2] = id;
    r[5] = element("td", r[5]);
    r[5].dataset.from = p.from;
    r[5].dataset.to = p.to;
    return r;
  }), "nothing in view");
}

const name = (p) => (p.gap ? "gap: " + p.gap : phases[p.phase][0]);
const took = (p) => duration((p.to - p.from) / 1000) + (p.running ? " so far" : "");

function describe(p) {
  return [p.lane.slice(2), name(p), p.request, p.partition >= 0 ? "partition " + p.partition : "", took(p)].filter(Boolean).join(" · ");
}

// ---- moving about

function zoom(factor, at) {
  if (at === undefined) at = fall.live ? fall.to : (fall.from + fall.to) / 2;
  const width = Math.min(Math.max((fall.to - fall.from) * factor, shortest), windowMs);
  const part = (at - fall.from) / (fall.to - fall.from);
  fall.from = at - part * width;
  fall.to = fall.from + width;
  draw();
}

function move(ms) {
  fall.live = false;
  const now = moment(), width = fall.to - fall.from;
  fall.from = Math.min(Math.max(fall.from + ms, now - windowMs), now - width);
  fall.to = fall.from + width;
  draw();
}

function live() {
  fall.live = true;
  draw();
}

function showAll() {
  fall.live = true;
  fall.from = fall.to - windowMs;
  draw();
}

const width = () => fall.to - fall.from;
const keys = {
  "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-width() / 4), ArrowRight: () => move(width() / 4),
  Home: showAll, End: live,
};

function listen() {
  const box = $("waterfall");
  $("b-in").addEventListener("click", () => zoom(0.5));
  $("b-out").addEventListener("click", () => zoom(2));
  $("b-left").addEventListener("click", () => move(-width() / 4));
  $("b-right").addEventListener("click", () => move(width() / 4));
  $("b-live").addEventListener("click", () => { if (fall.live) { fall.live = false; draw(); } else live(); });
  $("phases").closest("details").addEventListener("toggle", draw);
  box.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  const timeAt = (clientX) => {
    const r = box.getBoundingClientRect();
    return fall.from + ((clientX - r.left - gutter()) / (r.width - gutter())) * width();
  };
  box.addEventListener("wheel", (e) => {
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) return;
    e.preventDefault();
    fall.live = false;
    zoom(e.deltaY > 0 ? 1.25 : 0.8, timeAt(e.clientX));
  }, { passive: false });

  const fingers = new Map();
  box.addEventListener("pointerdown", (e) => {
    fingers.set(e.pointerId, e.clientX);
    if (e.pointerType !== "touch") box.setPointerCapture(e.pointerId);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) box.addEventListener(end, (e) => fingers.delete(e.pointerId));
  box.addEventListener("pointermove", (e) => {
    hover(e);
    if (!fingers.has(e.pointerId)) return;
    const before = fingers.get(e.pointerId);
    if (fingers.size === 1) {
      move(((before - e.clientX) / (box.clientWidth - gutter())) * width());
    } else if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== e.pointerId)[1];
      const was = Math.abs(before - other), is = Math.max(Math.abs(e.clientX - other), 1);
      fall.live = false;
      zoom(was / is, timeAt((e.clientX + other) / 2));
    }
    fingers.set(e.pointerId, e.clientX);
  });
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

function hover(e) {
  const r = $("canvas").getBoundingClientRect();
  const x = e.clientX - r.left, y = e.clientY - r.top;
  const hit = (fall.boxes || []).findLast((b) => x >= b.left - 2 && x <= b.right + 2 && y >= b.top && y <= b.bottom);
  $("hover").textContent = hit ? describe(hit.what) : "";
}

function connect() {
  const events = new EventSource("api/events");
  events.addEventListener("status", (e) => showStatus(JSON.parse(e.data)));
  events.addEventListener("timeline", (e) => showTimeline(JSON.parse(e.data)));
  events.addEventListener("error", () => {
    state("bad", "connection lost");
    fall.open.clear(); // the next connection tells the window from its beginning
    fall.done = [];
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  });
}

for (const [text, className] of legend) {
  const item = element("li");
  item.append(element("i", "", className), text);
  $("legend").append(item);
}
listen();
connect();
