"use strict";
const $ = id => document.getElementById(id);
const most = 500; // jobs in the table
let token = "", data = { jobs: [], workers: [], stores: [] }, chosen = "", seen = "";

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
const time = s => s == null ? "" : s >= 3600 ? (s / 3600).toFixed(1) + " h" : s >= 60 ? (s / 60).toFixed(1) + " min" : s.toFixed(0) + " s";
const gap = g => g == null ? "" : g.toPrecision(3);

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
const n = text => ({ text: String(text ?? ""), class: "n" }), state = s => ({ text: s, class: s.split(" ")[0] });
function button(text, does, link) {
  const b = document.createElement("button");
  b.type = "button"; b.textContent = text; b.onclick = does; if (link) b.className = "link";
  return b;
}
// fill replaces a table's rows and leaves the focus where it was.
function fill(id, rows) {
  const body = $(id).tBodies[0], focus = body.contains(document.activeElement) ? [...body.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  body.replaceChildren(...rows);
  if (focus >= 0) body.querySelectorAll("button")[focus]?.focus();
}
async function act(job, what) {
  try { await json(`api/v1/jobs/${encodeURIComponent(job)}:${what}`, { method: "POST", headers: { "X-Taxon": "1" } }); }
  catch (e) { $("state").textContent = e.message; }
}
function draw(part) {
  if (part === "jobs") {
    const want = $("which").value, open = j => j.state === "running" || j.state === "queued", count = {},
      shown = data.jobs.filter(j => !want || j.state.startsWith(want)).reverse().sort((a, b) => open(b) - open(a)); // what goes on, then what ended, the newest first
    for (const j of data.jobs) { const s = j.state.split(" ")[0]; count[s] = (count[s] || 0) + 1; }
    $("counts").textContent = (Object.entries(count).map(([s, k]) => `${k} ${s}`).join(", ") || "none yet") + (shown.length > most ? `; ${most} are shown` : "");
    fill("jobs", shown.slice(0, most).map(j => {
      const does = j.state === "running" || j.state === "queued" ? button("cancel", () => act(j.job, "cancel")) : j.resumable ? button("resume", () => act(j.job, "resume")) : "";
      if (does) does.setAttribute("aria-label", `${does.textContent} ${j.job}`);
      const r = row([button(j.name ? `${j.job} (${j.name})` : j.job, () => choose(j.job), true), state(j.state), j.phase, n(j.sweep), n(gap(j.gap)), n(time(j.eta_seconds)), j.submitted.replace("T", " ").replace("Z", ""), does]);
      if (j.error) { const e = document.createElement("div"); e.className = "error"; e.textContent = j.error; r.cells[1].append(e); }
      return r;
    }));
    const line = data.jobs.find(j => j.job === chosen), now = JSON.stringify(line);
    if (line && now !== seen) { seen = now; refresh(); }
  } else if (part === "workers") fill("workers", data.workers.map(w => row([w.name || w.worker, state(w.state), n(`${w.running} of ${w.slots}`), n(w.tasks_done), n(size(w.memory_bytes)), w.version])));
  else fill("stores", data.stores.map(s => row([s.store, state(s.state), s.addr, n(s.values), n(size(s.bytes)), n(size(s.free_bytes)), s.version])));
}
function choose(job) { chosen = job; seen = ""; draw("jobs"); }

// chart draws lines of points; log: a logarithmic axis.
function chart(title, lines, log) {
  const f = log ? Math.log10 : y => y, points = lines.flat().filter(p => p[1] != null && isFinite(f(p[1])));
  if (points.length < 2) return null;
  const xs = points.map(p => p[0]), ys = points.map(p => f(p[1])), x0 = Math.min(...xs), x1 = Math.max(...xs), y0 = Math.min(...ys), y1 = Math.max(...ys);
  const px = x => 52 + (x - x0) / (x1 - x0 || 1) * 350, py = y => 150 - (f(y) - y0) / (y1 - y0 || 1) * 135, back = y => (log ? 10 ** y : y).toPrecision(3);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), add = (name, at, text) => { const e = document.createElementNS(svg.namespaceURI, name); for (const k in at) e.setAttribute(k, at[k]); if (text) e.textContent = text; svg.append(e); };
  svg.setAttribute("viewBox", "0 0 410 175"); svg.setAttribute("role", "img"); svg.setAttribute("aria-label", `${title}: from ${back(ys[0])} to ${back(ys[ys.length - 1])}`);
  lines.forEach((line, k) => add("polyline", { class: k ? "two" : "one", points: line.filter(p => p[1] != null && isFinite(f(p[1]))).map(p => px(p[0]).toFixed(1) + "," + py(p[1]).toFixed(1)).join(" ") }));
  add("text", { x: 46, y: 154, "text-anchor": "end" }, back(y0)); add("text", { x: 46, y: 19, "text-anchor": "end" }, back(y1));
  add("text", { x: 52, y: 170 }, String(x0)); add("text", { x: 402, y: 170, "text-anchor": "end" }, String(x1));
  const figure = document.createElement("figure"), caption = document.createElement("figcaption");
  caption.textContent = title; figure.append(caption, svg);
  return figure;
}
async function refresh() {
  const job = chosen;
  let j;
  try { j = await json(`api/v1/jobs/${encodeURIComponent(job)}`); } catch (e) { $("state").textContent = e.message; return; }
  if (job !== chosen) return;
  $("one").hidden = false; $("h-one").textContent = job;
  $("summary").textContent = [j.state, j.phase, `sweep ${j.sweep}`, j.gap == null ? "" : `gap ${gap(j.gap)}`, `tasks: ${j.tasks.done} done, ${j.tasks.running} under way, ${j.tasks.waiting} waiting, ${j.tasks.retried} repeated`,
    j.workers_lost ? `${j.workers_lost} workers lost` : "", j.waits_for || "", j.error].filter(Boolean).join("; ");
  const t = j.trace || [], of = key => t.filter(r => r[key] != null).map(r => [r.sweep, r[key]]);
  $("charts").replaceChildren(...[chart("Gap by sweep", [of("gap")], true), chart("Objective and its bound by sweep", [of("objective"), of("dual")], true), chart("Micro- and macro-F1 by sweep", [of("micro_f1"), of("macro_f1")])].filter(Boolean));
  $("log").textContent = j.log.map(l => `${l.time.slice(0, 19).replace("T", " ")}  ${l.level}  ${l.text}`).join("\n");
}
// listen reads server-sent events by fetch, which can send a token.
async function listen() {
  for (;;) {
    try {
      const r = await call("api/v1/events");
      if (r.status === 401 || r.status === 403) { $("login").hidden = false; $("state").textContent = (await r.text()).trim(); return; }
      if (!r.ok) throw new Error(r.statusText);
      $("login").hidden = true; $("state").textContent = "live";
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
$("login").onsubmit = e => { e.preventDefault(); token = $("token").value; listen(); };
listen();
