"use strict";
// Draws the processes of a run on a canvas. What it shows is also in the tables and still pictures.
(async () => {
  const root = document.documentElement, figure = document.getElementById("gantt");
  const ready = () => { root.dataset.ready = ""; };
  if (!figure || !window.DecompressionStream) { ready(); return; }
  const data = JSON.parse(document.getElementById("data").textContent);
  const packed = Uint8Array.from(atob(data.bars), c => c.charCodeAt(0));
  const inflated = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bars = JSON.parse(await new Response(inflated).text());

  let span = 0;
  const lanes = data.lanes.map((title, l) => {
    const own = bars[l], n = own.length / 3, name = new Uint32Array(n), from = new Float64Array(n);
    const to = new Float64Array(n), depth = new Uint8Array(n), open = [];
    for (let i = 0, t = 0; i < n; i++) {
      name[i] = own[3 * i]; t += own[3 * i + 1]; from[i] = t / 1e4; to[i] = from[i] + own[3 * i + 2] / 1e4;
      while (open.length && open[open.length - 1] <= from[i]) open.pop();
      depth[i] = Math.min(3, open.length); open.push(to[i]); span = Math.max(span, to[i]);
    }
    return { title, n, name, from, to, depth };
  });
  for (const [, start, length] of data.steps) span = Math.max(span, start + length);
  span = span || 1;

  const canvas = figure.querySelector("canvas"), tip = figure.querySelector(".tip");
  const says = figure.querySelector("output"), pen = canvas.getContext("2d");
  const AXIS = 34, ROW = 20, TALL = 16;
  // Of roles with many processes all rows fit at first; the few others stay readable.
  const role = lane => lane.title.split(" ")[0], members = new Map();
  for (const lane of lanes) members.set(role(lane), (members.get(role(lane)) || 0) + 1);
  const few = lanes.map(lane => members.get(role(lane)) <= 8);
  const offsets = new Float64Array(lanes.length + 1);
  let from = 0, to = span, row = 0, top = 0, labels = 150, wide = 0, high = 0, current = -1;
  let queued = false, dark = false, hatch = null;

  const time = t => {
    const a = Math.abs(t);
    return a >= 99.95 ? t.toFixed(0) + " s" : a >= 1 ? t.toFixed(a >= 10 ? 1 : 2) + " s"
      : a >= 1e-3 ? (t * 1e3).toFixed(a >= 1e-2 ? 0 : 1) + " ms" : (t * 1e6).toFixed(0) + " µs";
  };
  const unit = raw => {
    const ten = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map(k => k * ten).find(k => k >= raw * 0.999);
  };
  const x = t => labels + (t - from) / (to - from) * (wide - labels);
  const later = () => { if (!queued) { queued = true; requestAnimationFrame(draw); } };
  const fits = () => Math.max(0, offsets[lanes.length] - (high - AXIS));
  const laid = () => few.forEach((own, l) => { offsets[l + 1] = offsets[l] + (own ? Math.max(row, TALL) : row); });

  function size() {
    wide = canvas.clientWidth; high = canvas.clientHeight;
    labels = Math.min(150, wide * 0.24);
    if (!row) {
      const own = few.filter(Boolean).length, room = high - AXIS - own * ROW;
      row = own < lanes.length ? Math.min(ROW, Math.max(0.2, room / (lanes.length - own))) : ROW;
      laid();
    }
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(wide * ratio); canvas.height = Math.round(high * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    later();
  }

  function stripes(color) {
    const one = document.createElement("canvas"), p = one.getContext("2d");
    one.width = one.height = 6; p.fillStyle = color; p.fillRect(0, 0, 6, 6);
    p.strokeStyle = "rgba(255,255,255,.4)"; p.lineWidth = 1.4; p.beginPath(); p.moveTo(-1, 7); p.lineTo(7, -1); p.stroke();
    return pen.createPattern(one, "repeat");
  }

  function draw() {
    queued = false;
    top = Math.min(Math.max(0, top), fits());
    const ink = getComputedStyle(figure).color;
    hatch = hatch || stripes(data.colors[data.colors.length - 1]);
    pen.clearRect(0, 0, wide, high);
    pen.font = "11px system-ui, sans-serif"; pen.textBaseline = "middle";

    // Steps as bands, seconds as ticks.
    let last = -Infinity;
    for (let i = 0; i < data.steps.length; i++) {
      const [step, start, length] = data.steps[i], a = x(start), b = x(start + length);
      if (b < labels || a > wide || (b - last < 1 && i !== current)) continue;
      last = b;
      pen.fillStyle = ink; pen.globalAlpha = i % 2 ? 0.03 : 0.07;
      pen.fillRect(Math.max(a, labels), 0, Math.min(b, wide) - Math.max(a, labels), high);
      pen.globalAlpha = 1;
      const room = Math.min(b, wide) - Math.max(a, labels);
      if (room > 24) pen.fillText((room > 60 ? "step " : "") + step, Math.max(a, labels) + 4, 9);
    }
    const every = unit((to - from) / Math.max(2, (wide - labels) / 90));
    for (let t = Math.ceil(from / every) * every; t <= to; t += every) {
      pen.globalAlpha = 0.15; pen.fillStyle = ink; pen.fillRect(x(t), 18, 1, high);
      pen.globalAlpha = 0.75;
      const word = every < 1 ? t.toFixed(Math.min(4, Math.ceil(-Math.log10(every)))) : Math.round(t).toLocaleString("en");
      pen.fillText(word + " s", x(t) + 3, 25);
    }
    pen.globalAlpha = 1;

    pen.save(); pen.beginPath(); pen.rect(labels, AXIS, wide - labels, high - AXIS); pen.clip();
    const scale = (wide - labels) / (to - from);
    for (let l = 0; l < lanes.length; l++) {
      const lane = lanes[l], y = AXIS + offsets[l] - top, row = offsets[l + 1] - offsets[l];
      if (y + row < AXIS || y > high) continue;
      const gap = row > 3 ? 1.5 : 0;
      let column = -1, longest = 0, who = -1; // of bars below a pixel the longest is drawn
      const dot = () => {
        if (who < 0) return;
        pen.fillStyle = who >= data.ours ? hatch : data.colors[who];
        pen.fillRect(column, y, 1, Math.max(0.5, row - gap));
        who = -1; longest = 0;
      };
      for (let i = 0; i < lane.n && lane.from[i] < to; i++) {
        if (lane.to[i] < from) continue;
        const a = labels + (lane.from[i] - from) * scale, b = labels + (lane.to[i] - from) * scale;
        const d = lane.depth[i];
        if (b - a < 1) {
          const at = Math.floor((a + b) / 2);
          if (at !== column) { dot(); column = at; }
          if (b - a >= longest) { longest = b - a; who = lane.name[i]; }
          continue;
        }
        dot();
        const inset = row > 8 ? d * 4 : 0, tall = Math.max(0.5, row - gap - inset);
        const ours = lane.name[i] >= data.ours;
        pen.fillStyle = ours ? hatch : data.colors[lane.name[i]];
        const left = Math.max(a, labels - 2), w = Math.max(0.6, Math.min(b, wide + 2) - left - (b - a > 4 ? 1 : 0));
        pen.fillRect(left, y + inset, w, tall);
        if (row >= 13 && w > 34 && !d) {
          const word = data.names[lane.name[i]], most = Math.floor((w - 8) / 6.2);
          pen.fillStyle = data.inks[lane.name[i]];
          if (most >= 3) pen.fillText(word.length <= most ? word : word.slice(0, most - 1) + "…", left + 4, y + tall / 2 + 0.5);
        }
      }
      dot();
    }
    pen.restore();

    pen.fillStyle = ink;
    const chars = Math.floor((labels - 8) / 6);
    for (let l = 0, above = -Infinity; l < lanes.length; l++) {
      const y = AXIS + (offsets[l] + offsets[l + 1]) / 2 - top, word = lanes[l].title;
      if (y < AXIS + 2 || y > high - 4 || y - above < 13) continue;
      above = y;
      pen.fillText(word.length <= chars ? word : word.slice(0, chars - 1) + "…", 2, y);
    }
    says.textContent = (current >= 0 ? "step " + data.steps[current][0] + " · " : "") + time(to - from);
  }

  function view(a, b) {
    const length = Math.min(span * 1.02, Math.max(1e-4, b - a));
    from = Math.min(Math.max(-span * 0.01, a), span * 1.01 - length); to = from + length;
    later();
  }
  const zoom = (k, px = (wide + labels) / 2) => {
    const t = from + (Math.max(labels, px) - labels) / (wide - labels) * (to - from);
    current = -1; view(t - (t - from) * k, t + (to - t) * k);
  };
  const show = i => {
    if (i < 0 || i >= data.steps.length) return;
    const [, start, length] = data.steps[i];
    current = i; view(start - length * 0.02, start + length * 1.02);
  };
  const nearest = t => {
    let best = -1;
    data.steps.forEach(([, start], i) => { if (start <= t) best = i; });
    return best < 0 ? 0 : best;
  };
  const move = by => show((current >= 0 ? current : nearest((from + to) / 2)) + by);
  const rows = k => { row = Math.min(40, Math.max(0.2, row * k)); laid(); later(); };
  const acts = {
    before: () => move(-1), after: () => move(1), in: () => zoom(0.6), out: () => zoom(1 / 0.6),
    all: () => { current = -1; view(-span * 0.01, span * 1.01); },
    taller: () => rows(1.5), lower: () => rows(1 / 1.5),
  };
  figure.addEventListener("click", e => { const act = e.target.dataset?.do; if (act) acts[act](); });
  canvas.addEventListener("keydown", e => {
    const by = (to - from) * 0.15;
    const act = {
      ArrowLeft: () => view(from - by, to - by), ArrowRight: () => view(from + by, to + by),
      ArrowUp: () => { top -= 40; later(); }, ArrowDown: () => { top += 40; later(); },
      "+": acts.in, "=": acts.in, "-": acts.out, "0": acts.all, "[": acts.before, "]": acts.after,
    }[e.key];
    if (act && !e.ctrlKey && !e.metaKey) { e.preventDefault(); act(); }
  });
  canvas.addEventListener("wheel", e => {
    if (e.ctrlKey || e.metaKey) { e.preventDefault(); zoom(Math.exp(e.deltaY * 0.004), e.offsetX); }
    else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      e.preventDefault(); const by = e.deltaX / wide * (to - from); view(from + by, to + by);
    }
  }, { passive: false });
  canvas.addEventListener("dblclick", e => show(nearest(from + (e.offsetX - labels) / (wide - labels) * (to - from))));

  const held = new Map();
  canvas.addEventListener("pointerdown", e => { held.set(e.pointerId, e); canvas.setPointerCapture(e.pointerId); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, e => held.delete(e.pointerId));
  canvas.addEventListener("pointermove", e => {
    const was = held.get(e.pointerId);
    if (was) {
      const other = [...held.values()].find(o => o.pointerId !== e.pointerId);
      if (other) {
        const before = Math.abs(was.offsetX - other.offsetX) + 1, now = Math.abs(e.offsetX - other.offsetX) + 1;
        zoom(before / now, (e.offsetX + other.offsetX) / 2);
      } else {
        const by = (was.offsetX - e.offsetX) / (wide - labels) * (to - from);
        if (by) { current = -1; view(from + by, to + by); }
        if (e.pointerType === "mouse") { top += was.offsetY - e.offsetY; later(); }
      }
      held.set(e.pointerId, e); tip.hidden = true;
      return;
    }
    point(e.offsetX, e.offsetY);
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });

  function point(px, py) {
    const l = offsets.findIndex(y => y > py - AXIS + top) - 1, lane = py > AXIS ? lanes[l] : undefined;
    const t = from + (px - labels) / (wide - labels) * (to - from), slack = (to - from) / wide * 2;
    let found = -1;
    if (lane && px > labels) for (let i = 0; i < lane.n && lane.from[i] <= t + slack; i++) {
      if (lane.to[i] >= t - slack) found = i;
    }
    tip.hidden = found < 0;
    if (found < 0) return;
    const step = data.steps[nearest(t)];
    tip.textContent = lane.title + "\n" + data.names[lane.name[found]] + " · " + time(lane.to[found] - lane.from[found])
      + "\n" + (step ? "step " + step[0] + ", " + time(lane.from[found] - step[1]) + " after it began" : "");
    tip.style.left = Math.max(0, Math.min(px + 12, wide - tip.offsetWidth - 4)) + "px";
    tip.style.top = Math.min(py + 14, high - 20) + "px";
  }

  figure.hidden = false; root.classList.add("drawn");
  canvas.style.height = Math.min(560, Math.max(140, AXIS + lanes.length * ROW + 4)) + "px";
  new ResizeObserver(size).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
  size();
  const begin = data.steps.findIndex(([step]) => step === data.show);
  if (begin >= 0) show(begin); else acts.all();
  draw(); ready();
})();
