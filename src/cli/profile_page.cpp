// The profile as one HTML page. The page draws itself from the JSON inside it; nothing is loaded from
// elsewhere.
#include "base/format.h"
#include "cli/json.h"
#include "cli/profile_report.h"

namespace millrace::cli {
namespace {

constexpr const char* kHead = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Millrace profile</title>
<style>
:root { color-scheme: light dark; --ink: #1d2733; --soft: #64748b; --line: #d5dce5; --paper: #fff; --forward: #2f7ed8;
  --backward: #d9822b; --update: #3d9970; --host: #8a94a3; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ef; --soft: #94a3b8; --line: #3a4554; --paper: #161b22; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1160px; padding: 0 1rem; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; } p { margin: .3rem 0; color: var(--soft); }
svg { width: 100%; display: block; } svg text { fill: var(--ink); font-size: 12px; } svg .soft { fill: var(--soft); }
svg line, svg path { stroke: var(--line); fill: none; } svg .roof { stroke: var(--ink); stroke-width: 1.5; }
circle { fill-opacity: .55; stroke: var(--paper); } circle:hover, rect.block:hover { stroke: var(--ink); stroke-width: 2; }
rect.block { cursor: pointer; stroke: var(--paper); stroke-width: .5; }
.forward { fill: var(--forward); } .backward { fill: var(--backward); } .update { fill: var(--update); } .host { fill: var(--host); }
.key i { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; border-radius: 2px; }
.bar { display: flex; height: 1.6rem; border-radius: 4px; overflow: hidden; margin: .6rem 0; }
table { border-collapse: collapse; width: 100%; font-size: 13px; } th, td { text-align: right; padding: .25rem .5rem;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; } th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; }
#about { min-height: 2.6em; font-size: 13px; overflow-wrap: anywhere; } button { font: inherit; font-size: 13px; }
</style></head><body>
<h1 id="title"></h1><p id="summary"></p><div class="bar" id="split"></div>
<p class="key"><i style="background:var(--forward)"></i>forward<i style="background:var(--backward)"></i>backward
<i style="background:var(--update)"></i>optimiser<i style="background:var(--host)"></i>data and host</p>
<h2>What would help most</h2><ol id="advice"></ol>
<h2>Roofline</h2><p>A circle is a kernel call, its area the time it takes. Lines: what this machine reaches at best.</p>
<svg id="roofline" viewBox="0 0 1100 460"></svg>
<h2>Flame chart of the median step</h2><p>Time runs to the right: phase, layer, kernel. Click a block to zoom.
<button id="reset">whole step</button></p><p id="about"></p><svg id="flame"></svg>
<h2>Kinds of work</h2><table id="kinds"></table><h2>Layers</h2><table id="layers"></table>
<h2>Slowest kernels</h2><table id="kernels"></table>
<script type="application/json" id="data">)html";

constexpr const char* kTail = R"html(</script>
<script>
"use strict";
window.onerror = (message) => { document.body.dataset.error = message; };
const data = JSON.parse(document.getElementById("data").textContent), at = (id) => document.getElementById(id);
const number = (x) => !isFinite(x) ? "–" : x >= 1000 ? Math.round(x).toLocaleString("en") : x >= 100 ? x.toFixed(0)
  : x >= 10 ? x.toFixed(1) : x.toFixed(2);
const time = (s) => s === 0 ? "–" : s >= 1 ? number(s) + " s" : s >= 1e-3 ? number(s * 1e3) + " ms" : number(s * 1e6) + " µs";
const percent = (x) => number(100 * x) + " %";
const kernelName = (l) => l.operation + (l.layer ? " in " + l.layer : "") + (l.phase === "forward" ? "" : " (" + l.phase + ")");
const describe = (l) => `${kernelName(l)} — ${l.provider}, ${l.kernel} — ${time(l.seconds)}, ${number(l.flops / l.seconds / 1e9)} GFLOP/s, `
  + `${number(l.bytes / l.seconds / 1e9)} GB/s, ${number(l.intensity)} FLOP/byte, ${percent(l.roofline_share)} of the roofline (${l.bound})`;
function draw(parent, tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return parent.appendChild(node);
}

at("title").textContent = `${data.name}: ${data.detail}`;
at("summary").textContent = `${time(data.seconds.step)} a step, ${number(data.items_per_second)} items/s; ${data.machine}. Means over the `
  + `faster ${data.counted} of ${data.steps} steps.`;
const kernelSeconds = data.seconds.forward + data.seconds.backward + data.seconds.update;
for (const [name, seconds] of Object.entries(data.seconds)) {
  if (name === "step" || !(seconds > 0)) continue;
  const part = document.createElement("div");
  part.style.cssText = `flex:${100 * seconds / data.seconds.step};background:var(--${["data", "host"].includes(name) ? "host" : name})`;
  part.title = `${name}: ${time(seconds)}, ${percent(seconds / data.seconds.step)}`;
  at("split").append(part);
}
for (const advice of data.advice.slice(0, 5)) {
  const item = document.createElement("li");
  item.textContent = `up to ${time(advice.seconds)} (${percent(advice.seconds / data.seconds.step)} of the step): ${advice.text}`;
  at("advice").append(item);
}

function roofline() {
  const svg = at("roofline"), left = 70, right = 1080, top = 20, bottom = 410;
  const shown = data.launches.filter((l) => l.flops > 0 && l.bytes > 0 && l.seconds > 0);
  const rates = shown.map((l) => l.flops / l.seconds / 1e9);
  const low = (list, start) => Math.floor(Math.log10(Math.min(start, ...list))), high = (list, start) => Math.ceil(Math.log10(Math.max(start, ...list)));
  const x0 = low(shown.map((l) => l.intensity), 0.1), x1 = high(shown.map((l) => l.intensity), 100);
  const y1 = high(rates.concat(data.peak_gflops), 1), y0 = Math.max(low(rates, 1), y1 - 6);
  const x = (v) => left + (Math.log10(v) - x0) / (x1 - x0) * (right - left);
  const y = (v) => bottom - (Math.max(Math.log10(v), y0) - y0) / (y1 - y0) * (bottom - top);
  for (let e = x0; e <= x1; ++e) {
    draw(svg, "line", { x1: x(10 ** e), x2: x(10 ** e), y1: top, y2: bottom });
    draw(svg, "text", { x: x(10 ** e), y: bottom + 18, "text-anchor": e === x1 ? "end" : "middle", class: "soft" }, e < 0 ? 10 ** e : (10 ** e).toLocaleString("en"));
  }
  for (let e = y0; e <= y1; ++e) {
    draw(svg, "line", { x1: left, x2: right, y1: y(10 ** e), y2: y(10 ** e) });
    draw(svg, "text", { x: left - 8, y: y(10 ** e) + 4, "text-anchor": "end", class: "soft" }, number(10 ** e));
  }
  draw(svg, "text", { x: (left + right) / 2, y: bottom + 40, "text-anchor": "middle", class: "soft" }, "FLOP / byte of operands and results");
  draw(svg, "text", { x: 18, y: (top + bottom) / 2, "text-anchor": "middle", class: "soft", transform: `rotate(-90 18 ${(top + bottom) / 2})` }, "GFLOP/s");
  for (const level of data.levels) {
    const begin = Math.max(10 ** x0, 10 ** y0 / level.gb_per_s), end = Math.min(data.peak_gflops / level.gb_per_s, 10 ** x1);
    if (end <= begin) continue;
    draw(svg, "line", { class: "roof", x1: x(begin), y1: y(begin * level.gb_per_s), x2: x(end), y2: y(end * level.gb_per_s) });
    const middle = Math.sqrt(begin * end);
    draw(svg, "text", { x: x(middle) + 8, y: y(middle * level.gb_per_s) + 12 }, `${level.name} ${number(level.gb_per_s)} GB/s`);
  }
  const ridge = data.peak_gflops / Math.max(...data.levels.map((l) => l.gb_per_s));
  draw(svg, "line", { class: "roof", x1: x(Math.max(ridge, 10 ** x0)), x2: right, y1: y(data.peak_gflops), y2: y(data.peak_gflops) });
  draw(svg, "text", { x: right, y: y(data.peak_gflops) - 6, "text-anchor": "end" }, `peak ${number(data.peak_gflops)} GFLOP/s`);
  for (const l of shown.sort((a, b) => b.seconds - a.seconds)) {
    const circle = draw(svg, "circle", { cx: x(l.intensity), cy: y(l.flops / l.seconds / 1e9), class: l.phase,
      r: 2.5 + 60 * Math.sqrt(l.seconds / kernelSeconds) });
    draw(circle, "title", {}, describe(l));
  }
}

// Blocks of one level are merged while the path above them stays the same.
function blocks() {
  const found = [], open = [];
  let deepest = 0;
  for (const l of data.launches) {
    if (l.begin === undefined) continue;
    const path = [l.phase === "update" ? "optimiser" : l.phase, ...(l.layer ? l.layer.split(".").slice(0, 4) : []), null];
    deepest = Math.max(deepest, path.length);
    let same = true;
    path.forEach((name, level) => {
      same = same && name !== null && open[level] && open[level].name === name;
      if (same) { open[level].end = l.end; return; }
      open[level] = { name, level, begin: l.begin, end: l.end, phase: l.phase, launch: name === null ? l : null };
      open.length = level + 1;
      found.push(open[level]);
    });
  }
  for (const part of data.parts) found.push({ name: part.name, level: 0, begin: part.begin, end: part.end, phase: "host", launch: null });
  return { found, rows: deepest };
}

function flame() {
  const svg = at("flame"), { found, rows } = blocks(), height = 20, whole = [0, data.typical_seconds];
  svg.setAttribute("viewBox", `0 0 1100 ${rows * height + 24}`);
  const show = ([from, to]) => {
    svg.replaceChildren();
    const x = (t) => (t - from) / (to - from) * 1100;
    for (const b of found) {
      const begin = Math.max(x(b.begin), 0), end = Math.min(x(b.end), 1100);
      if (end <= 0 || begin >= 1100 || end - begin < 0.15) continue;
      const text = b.launch ? kernelName(b.launch) : b.name;
      const block = draw(svg, "rect", { class: "block " + b.phase, x: begin, y: b.level * height, width: end - begin, height: height - 1,
        "fill-opacity": b.launch ? 0.65 : 1 - 0.08 * b.level });
      draw(block, "title", {}, b.launch ? describe(b.launch) : `${text}: ${time(b.end - b.begin)}`);
      block.onclick = () => { at("about").textContent = b.launch ? describe(b.launch) : `${text}: ${time(b.end - b.begin)}`; show([b.begin, b.end]); };
      if (end - begin > 30)
        draw(svg, "text", { x: begin + 4, y: b.level * height + 14, "pointer-events": "none", style: "fill:#fff;font-size:11px" },
          text.slice(0, Math.floor((end - begin) / 6.2)));
    }
    for (let i = 0; i <= 10; ++i)
      draw(svg, "text", { x: 110 * i, y: rows * height + 16, class: "soft", "text-anchor": i === 0 ? "start" : i === 10 ? "end" : "middle" },
        time(from + (to - from) * i / 10));
  };
  at("reset").onclick = () => show(whole);
  show(whole);
}

function table(id, titles, rows) {
  const row = (cells, tag) => {
    const line = document.createElement("tr");
    for (const text of cells) line.appendChild(document.createElement(tag)).textContent = text;
    at(id).append(line);
  };
  row(titles, "th");
  for (const cells of rows) row(cells, "td");
}
const groupTitles = ["", "launches", "time", "of the step", "forward", "backward", "optimiser", "GFLOP/s", "GB/s", "of roofline"];
const groupRow = (g) => [g.name, g.launches, time(g.seconds), percent(g.seconds / data.seconds.step), time(g.forward), time(g.backward),
  time(g.update), number(g.flops / g.seconds / 1e9), number(g.bytes / g.seconds / 1e9), percent(g.roofline_seconds / g.seconds)];
roofline();
flame();
table("kinds", groupTitles, data.kinds.map(groupRow));
table("layers", groupTitles, data.layers.map(groupRow));
table("kernels", ["", "time", "of the step", "GFLOP/s", "GB/s", "FLOP/byte", "bound by", "of roofline"],
  [...data.launches].sort((a, b) => b.seconds - a.seconds).slice(0, 40).map((l) => [kernelName(l), time(l.seconds),
    percent(l.seconds / data.seconds.step), number(l.flops / l.seconds / 1e9), number(l.bytes / l.seconds / 1e9), number(l.intensity),
    l.bound, percent(l.roofline_share)]));
document.body.dataset.ready = "yes";
</script></body></html>
)html";

/// Inside a script element "</" would end it.
std::string for_script(std::string text) {
  for (size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) text.insert(at + 1, 1, '\\');
  return text;
}

}  // namespace

std::string profile_page(const Profile& p, const ProfileTitle& title) {
  return kHead + for_script(profile_json(p, title, 0)) + kTail;
}

}  // namespace millrace::cli
