"use strict";
const $ = id => document.getElementById(id);
const most = 500; // jobs in the table
let token = kept("taxon-token"), data = { jobs: [], workers: [], stores: [] }, chosen = "", seen = "", past = { now: 0, workers: [] }, worker = "", sure = "";

// kept reads what this tab keeps until it is closed.
function kept(name) { try { return sessionStorage.getItem(name) || ""; } catch { return ""; } }
function keep(name, text) { try { if (text) sessionStorage.setItem(name, text); else sessionStorage.removeItem(name); } catch {} }
function call(path, options = {}) {
  const headers = { ...(options.headers || {}), ...(token ? { Authorization: "Bearer " + token } : {}) };
  return fetch(path, { ...options, headers });
}
async function json(path, options) {
  const r = await call(path, options), text = await r.text();
  if (!r.ok) { let why = text; try { why = JSON.parse(text).error; } catch {} throw new Error(why.trim() || r.statusText); }
  return JSON.parse(text);
}
const size = n => n >= 2 ** 30 ? (n / 2 ** 30).toFixed(1) + " GiB" : n >= 2 ** 20 ? (n / 2 ** 20).toFixed(0) + " MiB" : n ? (n / 1024).toFixed(0) + " KiB" : "";
const time = s => s == null ? "" : s >= 3600 ? (s / 3600).toFixed(1) + " h" : s >= 60 ? (s / 60).toFixed(1) + " min" : s >= 10 || s === 0 ? s.toFixed(0) + " s" : s >= 1 ? s.toFixed(1) + " s" : (1000 * s).toFixed(0) + " ms";
// between is a range of seconds in one unit.
function between(low, high) {
  if (low == null || !(high > 0)) return "";
  const [unit, name] = high >= 172800 ? [86400, "d"] : high >= 7200 ? [3600, "h"] : high >= 100 ? [60, "min"] : [1, "s"], from = Math.floor(low / unit), to = Math.ceil(high / unit);
  return from === to ? `${to} ${name}` : from ? `${from} to ${to} ${name}` : `up to ${to} ${name}`;
}
const gap = g => g == null ? "" : g && Math.abs(g) < 1e-3 ? g.toExponential(2) : g.toPrecision(3);
const clock = t => t.slice(0, 19).replace("T", " ");

function row(cells) {
  const tr = document.createElement("tr");
  cells.forEach((c, k) => {
    const td = document.createElement(k ? "td" : "th");
    if (!k) td.scope = "row";
    if (c instanceof Node) td.append(c); else if (typeof c === "object" && c) { td.textContent = c.text; td.className = c.class; } else td.textContent = c ?? "";
    tr.append(td);
  });
  return tr;
}
const n = text => ({ text: String(text ?? ""), class: "n" }), more = (text, number) => ({ text: String(text ?? ""), class: number ? "n more" : "more" }), state = s => ({ text: s, class: s.split(" ")[0] });
function button(text, does, link) {
  const b = document.createElement("button");
  b.type = "button"; b.textContent = text; b.onclick = does; if (link) b.className = "link";
  return b;
}
function link(job, text) {
  const a = document.createElement("a");
  a.href = "#job=" + encodeURIComponent(job); a.textContent = text;
  return a;
}
// fill brings a table up to date. Rows of items that have not changed stay as they are, and the focus stays where it was.
const rows = {};
function fill(id, items, key, make) {
  const body = $(id).tBodies[0], old = rows[id] || new Map(), now = rows[id] = new Map(), keys = new Set(items.map(key));
  const focus = body.contains(document.activeElement) ? document.activeElement : null, at = focus && [...focus.closest("tr").querySelectorAll("button, a")].indexOf(focus), of = focus && focus.closest("tr").dataset.key;
  for (const [k, r] of old) if (!keys.has(k)) r.tr.remove();
  let place = body.firstElementChild;
  for (const item of items) {
    const text = JSON.stringify(item), k = key(item);
    let r = old.get(k);
    if (!r || r.text !== text) { const tr = make(item); tr.dataset.key = k; if (r) { if (r.tr === place) place = place.nextElementSibling; r.tr.remove(); } r = { text, tr }; }
    now.set(k, r);
    if (r.tr === place) place = place.nextElementSibling; else body.insertBefore(r.tr, place);
  }
  if (focus && document.activeElement !== focus) (now.get(of)?.tr.querySelectorAll("button, a")[at] || body.closest(".wide")).focus();
}
async function act(job, what) {
  try { await json(`api/v1/jobs/${encodeURIComponent(job)}:${what}`, { method: "POST", headers: { "X-Taxon": "1" } }); $("message").textContent = ""; }
  catch (e) { $("message").textContent = e.message; }
}
const open = j => ["running", "waiting", "queued"].includes(j.state);
// twice asks before it cancels: the same button, again within some seconds.
function twice(job) {
  if (sure === job) { sure = ""; act(job, "cancel"); return; }
  sure = job;
  draw("jobs");
  setTimeout(() => { if (sure === job) { sure = ""; draw("jobs"); } }, 6000);
}
function jobRow(j) {
  const does = open(j) ? button(j.sure ? "really cancel?" : "cancel", () => twice(j.job)) : j.resumable ? button("resume", () => act(j.job, "resume")) : "";
  if (does) does.setAttribute("aria-label", `${does.textContent} ${j.job}`);
  if (j.sure) does.className = "sure";
  const r = row([link(j.job, j.name ? `${j.job} (${j.name})` : j.job), state(j.state), more(j.phase), more(j.sweep, true), n(gap(j.gap)), n(open(j) ? between(j.eta_low_seconds, j.eta_high_seconds) : ""), more(clock(j.submitted)), does]);
  if (j.error) { const e = document.createElement("div"); e.className = "error"; e.textContent = j.error; r.cells[1].append(e); }
  return r;
}
function workerRow(w) {
  const r = row([button(w.name || w.worker, () => { worker = w.worker; drawPast(); }, true), state(w.state), n(`${w.running} of ${w.slots}`), { text: "", class: "line more" }, more(""), n(w.tasks_done), more(w.cores || "", true), more(size(w.memory_bytes), true), more(w.version)]);
  r.cells[3].onmousemove = e => { r.cells[3].title = spansAt(w.worker, e); };
  return r;
}
const lives = w => w.state !== "lost" && w.state !== "left";
function draw(part) {
  if (part === "jobs") {
    const want = $("which").value, count = {},
      shown = data.jobs.filter(j => !want || j.state.startsWith(want)).reverse().sort((a, b) => open(b) - open(a)); // what goes on, then what ended, the newest first
    for (const j of data.jobs) { const s = j.state.split(" ")[0]; count[s] = (count[s] || 0) + 1; }
    $("counts").textContent = (Object.entries(count).map(([s, k]) => `${k} ${s}`).join(", ") || "none yet") + (shown.length > most ? `; ${most} are shown` : "");
    fill("jobs", shown.slice(0, most).map(j => j.job === sure ? { ...j, sure: true } : j), j => j.job, jobRow);
    const line = data.jobs.find(j => j.job === chosen), now = JSON.stringify(line);
    if (line && now !== seen) { seen = now; refresh(); }
  } else if (part === "workers") {
    const gone = data.workers.filter(w => !lives(w)).reverse();
    fill("workers", data.workers.filter(lives), w => w.worker, workerRow);
    fill("lost", gone, w => w.worker, w => row([button(w.name || w.worker, () => { worker = w.worker; drawPast(); }, true), state(w.state), n(w.tasks_done), more(w.version)]));
    $("gone").hidden = !gone.length;
    $("gone").firstElementChild.textContent = `${gone.length} that left or were lost`;
    drawTimeline();
  } else fill("stores", data.stores, s => s.store, s => row([s.store, state(s.state), more(s.addr), n(s.values), more(size(s.bytes), true), n(size(s.free_bytes)), more(s.jobs.length, true), more(s.version)]));
  drawTrouble();
}
// drawTrouble says on top what somebody should look after.
function drawTrouble() {
  const some = (list, one, many) => list.length ? [`${list.length === 1 ? one : `${list.length} ${many}`}: ${list.slice(0, 5).join(", ")}${list.length > 5 ? ", ..." : ""}`] : [];
  const jobs = s => data.jobs.filter(j => j.state === s).map(j => j.job).reverse(), stores = f => data.stores.filter(f).map(s => s.store);
  const none = data.jobs.some(open) && !data.workers.some(lives) ? ["No worker is up"] : [];
  const texts = [...none, ...some(stores(s => s.state !== "up"), "A store does not answer", "stores do not answer"), ...some(stores(s => s.state === "up" && s.free_bytes < s.reserve_bytes), "A store is full and takes no writes", "stores are full and take no writes"),
    ...some(jobs("waiting"), "A job can't continue", "jobs can't continue"), ...some(jobs("failed"), "A job has failed", "jobs have failed")];
  const text = texts.join("\n"), box = $("trouble");
  if (box.dataset.text === text) return;
  box.dataset.text = text; box.hidden = !text;
  box.replaceChildren(...texts.map(t => { const p = document.createElement("p"); p.textContent = t; return p; }));
}
// choose shows the job that the address names.
function choose() {
  const job = /^#job=(.+)$/.exec(location.hash);
  chosen = job ? decodeURIComponent(job[1]) : ""; seen = "";
  $("one").hidden = true;
  draw("jobs");
  if (chosen) refresh().then(() => $("one").scrollIntoView({ block: "nearest" }));
}

const svgNS = "http://www.w3.org/2000/svg";
function element(name, at, text) {
  const e = document.createElementNS(svgNS, name);
  for (const k in at) e.setAttribute(k, at[k]);
  if (text) e.textContent = text;
  return e;
}
// The timeline: a lane for each task that runs beside others.
const width = 600, kind = s => !s.ended ? "runs" : s.result === "done" ? "done" : s.result === "revoked" || s.result === "returned" ? "void" : "bad";
function lanes(spans) {
  const ends = [];
  return spans.map(s => {
    let lane = ends.findIndex(e => e <= s.begun);
    if (lane < 0) lane = ends.length;
    ends[lane] = s.ended || Infinity;
    return lane;
  });
}
const what = s => `${s.job} sweep ${s.sweep} ${s.phase}, task ${s.tasks > 1 ? `${s.task} and ${s.tasks - 1} more` : s.task}`;
const lasts = (s, now) => (Math.max(0, (s.ended || now) - s.begun)) / 1000;
function drawTimeline() {
  const of = new Map(past.workers.map(w => [w.worker, w.spans])), seconds = Number($("span").value), from = past.now - 1000 * seconds;
  for (const [id, r] of rows.workers || []) {
    const all = of.get(id) || [], spans = all.filter(s => !s.ended || s.ended >= from), lane = lanes(spans), count = Math.max(1, ...lane.map(l => l + 1)), high = count > 16 ? 3 : count > 6 ? 5 : 8;
    const paths = {}, tally = {};
    spans.forEach((s, k) => {
      const x = Math.max(0, (s.begun - from) / 1000 / seconds * width), end = Math.min(width, ((s.ended || past.now) - from) / 1000 / seconds * width), c = kind(s);
      paths[c] = (paths[c] || "") + `M${x.toFixed(1)} ${lane[k] * high}h${Math.max(1, end - x).toFixed(1)}v${high - 1}h${-Math.max(1, end - x).toFixed(1)}z`;
      tally[c] = (tally[c] || 0) + s.tasks;
    });
    const text = JSON.stringify(paths);
    if (r.line === text) continue;
    r.line = text;
    const runs = spans.filter(s => !s.ended), names = [...new Set(runs.map(s => `${s.job} ${s.phase}`))].join(", ");
    const told = Object.entries({ done: "done", runs: "under way", bad: "lost or failed", void: "not counted" }).filter(([c]) => tally[c]).map(([c, t]) => `${tally[c]} ${t}`).join(", ") || "none";
    const svg = element("svg", { viewBox: `0 0 ${width} ${count * high}`, preserveAspectRatio: "none", height: count * high, role: "img", "aria-label": `tasks in ${time(seconds)}: ${told}` });
    for (const c in paths) svg.append(element("path", { d: paths[c], class: "k-" + c }));
    r.tr.cells[3].replaceChildren(svg);
    r.tr.cells[4].textContent = names;
  }
  drawPast();
}
// spansAt says what a worker ran where the mouse points.
function spansAt(id, e) {
  const box = e.currentTarget.getBoundingClientRect(), seconds = Number($("span").value), at = past.now - 1000 * seconds * (1 - (e.clientX - box.left) / box.width), slack = 1000 * seconds / box.width;
  return (past.workers.find(w => w.worker === id)?.spans || []).filter(s => s.begun - slack <= at && at <= (s.ended || past.now) + slack).slice(0, 8).map(s => `${what(s)}: ${s.result || "under way"}, ${time(lasts(s, past.now))}`).join("\n");
}
// drawPast lists the tasks of the worker that was chosen.
function drawPast() {
  const w = data.workers.find(w => w.worker === worker);
  $("past").hidden = !w;
  if (!w) return;
  const spans = past.workers.find(p => p.worker === worker)?.spans || [];
  $("h-past").textContent = `Last tasks of ${w.name || w.worker}`;
  fill("spans", [...spans].reverse(), s => `${s.job} ${s.step} ${s.task} ${s.begun}`, s => row([clock(new Date(s.begun).toISOString()), n(s.ended ? time(lasts(s)) : ""), state(s.result || "under way"), s.job, n(s.sweep), s.phase, n(s.step), n(s.tasks > 1 ? `${s.task} and ${s.tasks - 1} more` : s.task)]));
}
async function follow() {
  for (;;) {
    if (!document.hidden && data.workers.length) try { past = await json("api/v1/timeline"); drawTimeline(); } catch {} // listen says that nobody answers
    await new Promise(go => setTimeout(go, 2000));
  }
}

// ticks are a few round numbers between two ends: powers of ten of a logarithmic axis, else steps of 1, 2 or 5.
function ticks(low, high, log) {
  if (log) {
    const from = Math.ceil(low - 1e-9), to = Math.floor(high + 1e-9), every = Math.max(1, Math.ceil((to - from) / 4));
    const out = [];
    for (let k = to; k >= from; k -= every) out.push(k);
    return out.length > 1 ? out : [low, high];
  }
  const raw = (high - low) / 4 || 1, ten = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(k => k * ten).find(s => s >= raw), out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) out.push(Number((k * step).toPrecision(12)));
  return out.length > 1 ? out : [low, high];
}
// label writes a tick: 0.01, 1e-5, 12,000.
const label = y => y && (Math.abs(y) < 1e-3 || Math.abs(y) >= 1e6) ? y.toExponential().replace("e+", "e") : Math.abs(y) >= 1000 ? y.toLocaleString("en", { maximumFractionDigits: 0 }) : String(Number(y.toPrecision(4)));
// chart draws lines of points; log: a logarithmic axis; goal: a level to reach.
function chart(title, names, lines, log, goal) {
  const f = log ? Math.log10 : y => y, points = lines.flat().filter(p => p[1] != null && isFinite(f(p[1])));
  if (points.length < 2) return null;
  const level = goal > 0 ? [f(goal)] : [], xs = points.map(p => p[0]), ys = points.map(p => f(p[1])).concat(level), x0 = Math.min(...xs), x1 = Math.max(...xs), y0 = Math.min(...ys), y1 = Math.max(...ys);
  const px = x => 62 + (x - x0) / (x1 - x0 || 1) * 335, at = v => 148 - (v - y0) / (y1 - y0 || 1) * 130, whole = Math.max(1, Math.ceil((x1 - x0) / 6));
  const told = names.map((name, k) => { const l = lines[k].filter(p => p[1] != null); return l.length ? `${name} ${gap(l[l.length - 1][1])}` : ""; }).filter(Boolean).join(", ");
  const svg = element("svg", { viewBox: "0 0 410 175", role: "img", "aria-label": `${title}, at last ${told}${goal > 0 ? `, goal ${gap(goal)}` : ""}` });
  for (const t of ticks(y0, y1, log)) svg.append(element("line", { class: "grid", x1: 62, x2: 397, y1: at(t).toFixed(1), y2: at(t).toFixed(1) }), element("text", { x: 56, y: (at(t) + 4).toFixed(1), "text-anchor": "end" }, label(log ? Number((10 ** t).toPrecision(3)) : t)));
  for (let x = x0; x <= x1; x += whole) svg.append(element("text", { x: px(x).toFixed(1), y: 168, "text-anchor": "middle" }, String(x)));
  if (level.length) svg.append(element("line", { class: "goal", x1: 62, x2: 397, y1: at(level[0]).toFixed(1), y2: at(level[0]).toFixed(1) }));
  lines.forEach((line, k) => svg.append(element("polyline", { class: k ? "two" : "one", points: line.filter(p => p[1] != null && isFinite(f(p[1]))).map(p => px(p[0]).toFixed(1) + "," + at(f(p[1])).toFixed(1)).join(" ") })));
  const figure = document.createElement("figure"), caption = document.createElement("figcaption");
  caption.append(title + ": ");
  names.forEach((name, k) => { if (k) caption.append(", "); const s = document.createElement("span"); s.className = k ? "two" : "one"; s.textContent = (k ? "- - " : "— ") + name; caption.append(s); });
  if (level.length) { const s = document.createElement("span"); s.className = "goal"; s.textContent = `··· goal ${gap(goal)}`; caption.append(", ", s); }
  figure.append(caption, svg);
  return figure;
}
function summary(pairs) {
  $("summary").replaceChildren(...pairs.filter(p => p[1] !== "" && p[1] != null).map(([name, text, full]) => {
    const div = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = name; dd.textContent = text; if (full) div.className = "full";
    div.append(dt, dd);
    return div;
  }));
}
async function refresh() {
  const job = chosen;
  let j;
  try { j = await json(`api/v1/jobs/${encodeURIComponent(job)}`); } catch (e) { $("message").textContent = e.message; return; }
  if (job !== chosen) return;
  $("one").hidden = false; $("h-one").textContent = job;
  summary([["State", j.state], ["Phase", j.phase], ["Sweep", j.sweep], ["Gap", j.gap == null ? "" : `${gap(j.gap)} of ${gap(j.options.gap)}`], ["To go", open(j) ? between(j.eta_low_seconds, j.eta_high_seconds) : ""], ["Time of work", time(j.seconds)], ["Waited besides", j.idle_seconds ? time(j.idle_seconds) : ""],
    ["Owner", j.owner], ["Method", j.method], ["Submitted", clock(j.submitted || "")], ["Started", clock(j.started || "")], ["Ended", clock(j.ended || "")], ["Stopped by", j.stopped_by],
    ["Tasks of the step", `${j.tasks.done} done, ${j.tasks.running} with workers, ${j.tasks.waiting} waiting`], ["Attempts repeated", j.tasks.retried], ["Given to a second worker", j.duplicates], ["Lost values computed again", j.recomputed], ["Workers lost", j.workers_lost], ["Rollbacks", j.rollbacks],
    ["Read from the store", size(j.bytes_read)], ["Written", size(j.bytes_written)], ["Copies of each value", j.replicas], ["Waits for", j.waits_for, true], ["Error", j.error, true], ["SHA-256 of the weights", j.weights_sha256, true]]);
  const t = j.trace || [], of = key => t.filter(r => r[key] != null).map(r => [r.sweep, r[key]]);
  $("charts").replaceChildren(...[chart("By sweep", ["gap"], [of("gap")], true, j.options.gap), chart("By sweep", ["objective", "its bound"], [of("objective"), of("dual")], true), chart("By sweep", ["micro-F1", "macro-F1"], [of("micro_f1"), of("macro_f1")])].filter(Boolean));
  const log = $("log"), atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  log.textContent = j.log.map(l => `${clock(l.time)}  ${l.level}  ${l.text}`).join("\n");
  if (atEnd) log.scrollTop = log.scrollHeight;
}
// listen reads server-sent events by fetch, which can send a token.
async function listen() {
  for (;;) {
    try {
      const r = await call("api/v1/events");
      if (r.status === 401 || r.status === 403) { keep("taxon-token", ""); $("login").hidden = false; $("state").textContent = (await r.text()).trim(); return; }
      if (!r.ok) throw new Error(r.statusText);
      if (!$("login").hidden) { $("login").hidden = true; if (chosen) refresh(); }
      $("state").textContent = "live";
      const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const e of events) {
          const name = /^event: (.*)$/m.exec(e), text = /^data: (.*)$/m.exec(e);
          if (name && text) { data[name[1]] = JSON.parse(text[1]); draw(name[1]); }
        }
      }
    } catch {}
    $("state").textContent = "the coordinator does not answer: trying again";
    await new Promise(go => setTimeout(go, 1000));
  }
}
$("which").onchange = () => draw("jobs");
$("span").onchange = drawTimeline;
$("login").onsubmit = e => { e.preventDefault(); token = $("token").value; keep("taxon-token", token); listen(); };
window.onhashchange = choose;
if (location.hash) choose();
listen();
follow();
