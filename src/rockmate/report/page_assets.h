// The style sheet and the script that every report carries.
#pragma once

namespace rockmate {

inline constexpr const char* kPageStyle = R"css(
:root {
  --paper: #fbfbf9; --card: #ffffff; --ink: #1d2128; --faint: #626b78; --edge: #e2e4e1; --rule: #b3261e; --bar: 0%;
  --c0: #1f6fb2; --c1: #d9732b; --c2: #2e8b57; --c3: #8e5bb5; --c4: #c2447b; --c5: #7a6a2f; --c6: #2a9aa5; --c7: #6b7280;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171c; --card: #1c2027; --ink: #e8eaed; --faint: #9aa3b0; --edge: #303640; --rule: #ff8a80;
    --c0: #6cb2eb; --c1: #f2a365; --c2: #6fcf97; --c3: #c39bea; --c4: #f28cb8; --c5: #d1bf6e; --c6: #66d1dc; --c7: #a0a8b4;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 940px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 12px; }
header p, p.note { color: var(--faint); margin: 0 0 10px; overflow-wrap: anywhere; }
figure + p.note, .scroll + p.note, .scroll + figure { margin-top: 12px; }
section { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; padding: 18px 20px; margin-top: 18px; }
nav { display: flex; flex-wrap: wrap; gap: 6px 20px; margin: 18px 2px 0; }
nav a { color: var(--c0); text-decoration: none; padding: 3px 0; white-space: nowrap; }
nav a:is(:hover, :focus-visible) { text-decoration: underline; }
nav ~ div { scroll-margin-top: 12px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(136px, 1fr)); gap: 12px; margin-top: 18px; }
.tile { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; padding: 12px 14px; }
.tile span, .tile small { display: block; color: var(--faint); font-size: 13px; }
.tile b { display: block; font-size: 22px; font-weight: 650; font-variant-numeric: tabular-nums; }
figure { margin: 0; }
.chart { display: block; width: 100%; height: auto; touch-action: pan-y; }
.chart.narrow, .chart.medium { display: none; }
.chart text { fill: var(--faint); font-size: 13px; font-family: inherit; }
.chart .tick.y { text-anchor: end; dominant-baseline: middle; }
.chart .tick.x, .chart .label.x { text-anchor: middle; }
.chart .rule-label { fill: var(--rule); paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
.chart .band { fill: var(--ink); opacity: 0.045; }
.chart .strip { fill: var(--c); }
.chart .end { text-anchor: end; }
.chart .grid { stroke: var(--edge); }
.chart .rule { stroke: var(--rule); stroke-dasharray: 6 4; stroke-width: 1.3; }
.chart .cursor { stroke: var(--faint); stroke-width: 1; }
.chart .line { fill: none; stroke: var(--c); stroke-width: 1.7; stroke-linejoin: round; }
.chart .dashed { stroke-dasharray: 3 3; }
.chart .area { fill: var(--c); opacity: 0.14; }
.chart .dot { fill: var(--c); }
.chart .marker { fill: none; stroke: var(--ink); stroke-width: 2; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.c4 { --c: var(--c4); } .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--faint); font-size: 13px; margin-bottom: 6px; }
.key { display: inline-block; width: 18px; border-top: 3px solid var(--c); vertical-align: middle; margin-right: 6px; }
.key.dashed { border-top-style: dashed; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 6px 10px; text-align: right; border-bottom: 1px solid var(--edge); white-space: nowrap; font-weight: 400; }
th:first-child { text-align: left; }
thead th { color: var(--faint); font-size: 13px; white-space: normal; vertical-align: bottom; }
tbody tr:last-child > * { border-bottom: 0; }
th.bar { background: linear-gradient(90deg, color-mix(in srgb, var(--c0) 20%, transparent) var(--bar), transparent var(--bar)); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 14px 18px; }
section + .pair { margin-top: 18px; }
.pair > section { margin-top: 0; }
.pair :is(th, td) { padding: 6px; }
.pair .chart.wide, .pair .chart.medium { display: none; }
.pair .chart.narrow { display: block; }
.pair > div { min-width: 0; }
details { margin-top: 10px; }
summary { cursor: pointer; color: var(--faint); padding: 4px 0; }
#tip { position: fixed; pointer-events: none; background: var(--ink); color: var(--paper); border-radius: 6px; padding: 6px 9px;
  font-size: 12.5px; white-space: pre; z-index: 2; font-variant-numeric: tabular-nums; }
@media (max-width: 900px) {
  .chart.wide { display: none; }
  .chart.medium { display: block; }
  .chart { max-width: 720px; margin: 0 auto; }
}
@media (max-width: 560px) {
  main { padding: 16px 10px 40px; }
  nav { flex-wrap: nowrap; overflow-x: auto; margin: 14px -10px 0; padding: 0 10px; }
  nav a { padding: 8px 0; }
  section { padding: 14px 10px; }
  .chart.medium { display: none; }
  .chart.narrow { display: block; max-width: 460px; }
  .tiles { grid-template-columns: 1fr 1fr; }
  th, td { padding: 6px 8px; }
  tbody th { white-space: normal; overflow-wrap: anywhere; min-width: 9em; }
}
)css";

// A cursor over each chart that tells the height of every curve where the pointer is.
inline constexpr const char* kPageScript = R"js(
const tip = document.getElementById("tip");
const units = ["B", "KiB", "MiB", "GiB", "TiB"];
function shown(value, axis) {
  if (axis === "share") return (100 * value).toFixed(1) + "%";
  if (axis !== "bytes") return value.toPrecision(4);
  let unit = 0;
  while (value >= 1000 && unit < 4) { value /= 1024; unit++; }
  return (unit ? value.toPrecision(3) : Math.round(value)) + " " + units[unit];
}
function heightAt(points, x) {
  let y = null;
  for (const [px, py] of points) { if (px > x && y !== null) break; y = py; }
  return y;
}
for (const svg of document.querySelectorAll("svg.chart[data-left]")) {
  const d = svg.dataset;
  const [left, right, top, bottom] = [d.left, d.right, d.top, d.bottom].map(Number);
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
  cursor.setAttribute("class", "cursor");
  const lines = [...svg.querySelectorAll("polyline")].map((line) => ({
    label: line.dataset.label,
    points: line.getAttribute("points").trim().split(" ").map((pair) => pair.split(",").map(Number)),
  }));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    if (x < left || x > right) { tip.hidden = true; cursor.remove(); return; }
    const text = [shown(((x - left) / (right - left)) * d.highX, d.x)];
    for (const line of lines) {
      const y = heightAt(line.points, x);
      if (y !== null) text.push(line.label + "  " + shown(((bottom - y) / (bottom - top)) * d.highY, d.y));
    }
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", top], ["y2", bottom]]) cursor.setAttribute(name, value);
    svg.append(cursor);
    tip.textContent = text.join("\n");
    tip.hidden = false;
    tip.style.top = event.clientY + 14 + "px";
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; cursor.remove(); });
}
)js";

}  // namespace rockmate
