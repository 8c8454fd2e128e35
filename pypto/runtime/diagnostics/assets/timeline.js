"use strict";

const LEFT = 170; // names of the lanes
const TOP = 26; // the scale
const LANE = 26;
const MOST_LISTED = 40;

// What the trace holds: lanes of slices, and flows between slices.

const trace = JSON.parse(document.getElementById("trace").textContent);
const lanes = new Map();
const slices = [];
const flows = [];

function laneOf(event) {
  const key = event.pid + "/" + event.tid;
  if (!lanes.has(key)) lanes.set(key, { name: key, slices: [], y: 0 });
  return lanes.get(key);
}

function read() {
  for (const event of trace.traceEvents) {
    if (event.ph === "M" && event.name === "thread_name") laneOf(event).name = event.args.name;
    if (event.ph !== "X") continue;
    const slice = {
      name: event.name,
      begin: event.ts,
      end: event.ts + event.dur,
      args: event.args || {},
      lane: laneOf(event),
      before: [],
      after: [],
    };
    slices.push(slice);
    slice.lane.slices.push(slice);
  }
  for (const lane of lanes.values()) lane.slices.sort((a, b) => a.begin - b.begin);
  const open = new Map();
  for (const event of trace.traceEvents) {
    if (event.ph === "s") open.set(event.id, sliceAt(event));
    if (event.ph !== "f") continue;
    const from = open.get(event.id);
    const to = sliceAt(event);
    if (!from || !to) continue;
    flows.push([from, to]);
    from.after.push(to);
    to.before.push(from);
  }
  [...lanes.values()].forEach((lane, index) => (lane.y = TOP + index * LANE));
}

// The slice that a flow's end lies in: the last one that begins there or earlier.
function sliceAt(event) {
  const found = laneOf(event).slices;
  let low = 0;
  let high = found.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (found[middle].begin <= event.ts) low = middle + 1;
    else high = middle;
  }
  return found[low - 1];
}

read();
const last = slices.reduce((most, slice) => Math.max(most, slice.end), 0.001);
const view = { begin: 0, end: last };
const hues = new Map();
for (const slice of slices) if (!hues.has(slice.name)) hues.set(slice.name, (hues.size * 137 + 210) % 360);
let selected = null;
let marked = null; // which slices are not faded

function label(slice) {
  return slice.args.task === undefined ? slice.name : `${slice.name} #${slice.args.task}`;
}

function us(time) {
  const many = Math.abs(time) >= 1000;
  return (many ? time / 1000 : time).toLocaleString("en", { maximumFractionDigits: 3 }) + (many ? " ms" : " µs");
}

// Drawing

const canvas = document.getElementById("view");
const pen = canvas.getContext("2d");
const xOf = (time) => LEFT + ((time - view.begin) / (view.end - view.begin)) * (canvas.clientWidth - LEFT);
const timeOf = (x) => view.begin + ((x - LEFT) / (canvas.clientWidth - LEFT)) * (view.end - view.begin);

function draw() {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = TOP + lanes.size * LANE + 8;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  drawScale(height);
  for (const lane of lanes.values()) drawLane(lane, width);
  if (selected) drawFlows();
}

function drawScale(height) {
  const span = view.end - view.begin;
  const power = Math.pow(10, Math.floor(Math.log10(span / 5)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => span / each <= 8) || 10 * power;
  pen.strokeStyle = "#e6e9ee";
  for (let time = Math.ceil(view.begin / step) * step; time <= view.end; time += step) {
    const x = xOf(time);
    pen.beginPath();
    pen.moveTo(x, TOP - 6);
    pen.lineTo(x, height);
    pen.stroke();
    pen.fillStyle = "#5b6675";
    pen.fillText(us(time), x + 3, 11);
  }
}

function drawLane(lane, width) {
  pen.fillStyle = "#1d2430";
  pen.fillText(lane.name, 6, lane.y + LANE / 2, LEFT - 12);
  let full = -1;
  for (const slice of lane.slices) {
    if (slice.end < view.begin || slice.begin > view.end) continue;
    const left = Math.max(LEFT, xOf(slice.begin));
    const right = Math.min(width, Math.max(xOf(slice.end), left + 1));
    // Of many slices within one pixel only one can be seen.
    if (right <= full) continue;
    full = right;
    const faded = marked !== null && !marked(slice);
    pen.fillStyle = `hsl(${hues.get(slice.name)} ${faded ? 12 : 62}% ${faded ? 90 : 76}%)`;
    pen.fillRect(left, lane.y + 3, Math.max(right - left - (right - left > 4 ? 1 : 0), 1), LANE - 6);
    if (slice === selected) {
      pen.strokeStyle = "#c4391d";
      pen.lineWidth = 2;
      pen.strokeRect(left, lane.y + 3, Math.max(right - left, 2), LANE - 6);
      pen.lineWidth = 1;
    }
    if (right - left > 34) {
      pen.save();
      pen.beginPath();
      pen.rect(left, lane.y, right - left - 4, LANE);
      pen.clip();
      pen.fillStyle = faded ? "#9aa3af" : "#1d2430";
      pen.fillText(label(slice), left + 4, lane.y + LANE / 2);
      pen.restore();
    }
  }
}

function drawFlows() {
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, canvas.clientWidth - LEFT, canvas.clientHeight);
  pen.clip();
  for (const [from, to] of flows) {
    if (from !== selected && to !== selected) continue;
    const [x0, y0] = [xOf(from.end), from.lane.y + LANE / 2];
    const [x1, y1] = [xOf(to.begin), to.lane.y + LANE / 2];
    pen.strokeStyle = from === selected ? "#1b5fc1" : "#c4391d";
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0 + 20, y0, x1 - 20, y1, x1, y1);
    pen.stroke();
  }
  pen.restore();
}

// Moving about

function moveTo(begin, span = view.end - view.begin) {
  view.begin = Math.max(0, Math.min(begin, last - span));
  view.end = view.begin + span;
  draw();
}

function zoom(factor, around = (view.begin + view.end) / 2) {
  const span = Math.min(last, Math.max((view.end - view.begin) * factor, 0.01));
  moveTo(around - (span * (around - view.begin)) / (view.end - view.begin), span);
}

function reveal(slice) {
  if (slice.begin >= view.begin && slice.end <= view.end) return;
  moveTo((slice.begin + slice.end - view.end + view.begin) / 2);
}

function sliceUnder(event) {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  const lane = [...lanes.values()].find((each) => y >= each.y && y < each.y + LANE);
  if (!lane || x < LEFT) return null;
  const time = timeOf(x);
  let nearest = null;
  let distance = ((view.end - view.begin) / (canvas.clientWidth - LEFT)) * 2;
  for (const slice of lane.slices) {
    const away = Math.max(slice.begin - time, time - slice.end, 0);
    if (away <= distance) [nearest, distance] = [slice, away];
  }
  return nearest;
}

// Selecting

function select(slice) {
  selected = slice;
  const box = document.getElementById("selected");
  box.className = slice ? "" : "quiet";
  box.textContent = slice ? "" : "Nothing is selected.";
  if (slice) box.appendChild(description(slice));
  draw();
}

function description(slice) {
  const rows = document.createElement("table");
  const add = (name, value) => {
    const row = rows.insertRow();
    row.appendChild(document.createElement("th")).textContent = name;
    row.insertCell().append(...[value].flat());
  };
  add("Task", label(slice));
  add("Lane", slice.lane.name);
  if (slice.args.core) add("Core", slice.args.core);
  if (slice.args.line) add("Submitted at", slice.args.line);
  add("Begins", us(slice.begin));
  add("Takes", us(slice.end - slice.begin));
  add("Waits for", others(slice.before));
  add("Waited for by", others(slice.after));
  return rows;
}

function others(found) {
  if (!found.length) return ["no task"];
  const parts = found.slice(0, MOST_LISTED).flatMap((slice) => {
    const button = document.createElement("button");
    button.textContent = label(slice);
    button.onclick = () => {
      reveal(slice);
      select(slice);
    };
    return [button, " "];
  });
  return found.length > MOST_LISTED ? [...parts, `and ${found.length - MOST_LISTED} more`] : parts;
}

function mark(which) {
  marked = which;
  draw();
}

// The table of kernels

function listKernels() {
  const kernels = new Map();
  for (const slice of slices) {
    if (slice.args.task === undefined) continue;
    if (!kernels.has(slice.name)) kernels.set(slice.name, { core: slice.args.core || "", times: [], total: 0 });
    kernels.get(slice.name).times.push(slice.end - slice.begin);
    kernels.get(slice.name).total += slice.end - slice.begin;
  }
  const rows = document.createElement("table");
  const head = rows.createTHead().insertRow();
  ["Kernel", "Core", "Tasks", "Total", "Mean", "Least", "Most"].forEach((name, index) => {
    const cell = head.appendChild(document.createElement("th"));
    cell.textContent = name;
    if (index > 1) cell.className = "number";
  });
  const body = rows.createTBody();
  for (const [name, { core, times, total }] of [...kernels].sort((a, b) => b[1].total - a[1].total)) {
    const row = body.insertRow();
    const [least, most] = times.reduce(([a, b], time) => [Math.min(a, time), Math.max(b, time)], [Infinity, 0]);
    [name, core, times.length, us(total), us(total / times.length), us(least), us(most)].forEach((value, index) => {
      const cell = row.insertCell();
      cell.textContent = value;
      if (index > 1) cell.className = "number";
    });
    row.onclick = () => {
      const on = !row.classList.contains("on");
      for (const other of body.rows) other.classList.remove("on");
      row.classList.toggle("on", on);
      mark(on ? (slice) => slice.name === name : null);
    };
  }
  document.getElementById("kernels").appendChild(rows);
}

// Events

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, begin: view.begin, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (drag) {
    drag.moved = drag.moved || Math.abs(event.clientX - drag.x) > 3;
    const moved = ((event.clientX - drag.x) / (canvas.clientWidth - LEFT)) * (view.end - view.begin);
    if (drag.moved) moveTo(drag.begin - moved);
    return;
  }
  const tip = document.getElementById("tip");
  const slice = sliceUnder(event);
  tip.style.display = slice ? "block" : "none";
  if (!slice) return;
  tip.textContent = `${label(slice)}: ${us(slice.end - slice.begin)}`;
  tip.style.left = event.clientX + 12 + "px";
  tip.style.top = event.clientY + 14 + "px";
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) select(sliceUnder(event));
  drag = null;
});
canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 400), timeOf(event.clientX - canvas.getBoundingClientRect().left));
  },
  { passive: false },
);
canvas.addEventListener("keydown", (event) => {
  const span = view.end - view.begin;
  const actions = {
    ArrowLeft: () => moveTo(view.begin - span / 5),
    ArrowRight: () => moveTo(view.begin + span / 5),
    "+": () => zoom(0.7),
    "-": () => zoom(1.4),
    Escape: () => select(null),
  };
  if (actions[event.key]) actions[event.key]();
});
document.getElementById("fit").onclick = () => moveTo(0, last);
document.getElementById("nearer").onclick = () => zoom(0.5);
document.getElementById("farther").onclick = () => zoom(2);
document.getElementById("find").oninput = (event) => {
  const text = event.target.value.trim().toLowerCase();
  const fits = (slice) => `${label(slice)} ${slice.args.line || ""}`.toLowerCase().includes(text);
  mark(text ? fits : null);
};

// An address that ends in #task=N selects that task.
function follow() {
  const wanted = /^#task=(\d+)$/.exec(location.hash);
  const slice = wanted && slices.find((each) => each.args.task === Number(wanted[1]));
  if (!slice) return;
  reveal(slice);
  select(slice);
}

window.timeline = {
  slices,
  flows,
  place: (slice) => ({ x: (xOf(slice.begin) + xOf(slice.end)) / 2, y: slice.lane.y + LANE / 2 }),
};
window.addEventListener("resize", draw);
window.addEventListener("hashchange", follow);
listKernels();
draw();
follow();
