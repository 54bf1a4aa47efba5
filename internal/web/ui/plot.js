// The plot of one budget over the last minutes: limit, sum of shares, sum of
// demand. Times come from the node; "now" is its newest sample.

import { el, svg, text, tip } from './dom.js';
import { axisTitle, rate, ticks, trim } from './format.js';

const KEEP = 310_000; // ms of samples kept
const GAP = 2_500; // ms between samples that break a line
const PAD = { left: 46, right: 10, top: 28, bottom: 26 };

export const SERIES = [
  { key: 'limit', label: 'Limit' },
  { key: 'share', label: 'Sum of shares' },
  { key: 'demand', label: 'Sum of demand' },
];

// Samples is the budget's recent past, ordered by time without duplicates.
export class Samples {
  constructor() {
    this.points = [];
  }

  // load replaces everything by an api.History.
  load(h) {
    this.points = h.t_ms.map((t, i) => ({ t, limit: h.limit[i], share: h.sum_share[i], demand: h.sum_demand[i] }));
  }

  // add appends a sample; one that is not newer than the last is dropped.
  add(point) {
    const last = this.points.at(-1);
    if (last && point.t <= last.t) return;
    this.points.push(point);
    while (this.points[0].t < point.t - KEEP) this.points.shift();
  }
}

// line returns the path of one series, broken at gaps.
function line(points, key, x, y) {
  let d = '';
  let before = -Infinity;
  for (const p of points) {
    d += `${p.t - before > GAP ? 'M' : 'L'}${x(p.t).toFixed(1)} ${y(p[key]).toFixed(1)}`;
    before = p.t;
  }
  return d;
}

// area closes each unbroken piece of a series down to the axis.
function area(points, key, x, y) {
  const pieces = [];
  for (const p of points) {
    const piece = pieces.at(-1);
    if (piece && p.t - piece.at(-1).t <= GAP) piece.push(p);
    else pieces.push([p]);
  }
  return pieces.map((piece) => {
    const top = piece.map((p) => `L${x(p.t).toFixed(1)} ${y(p[key]).toFixed(1)}`).join('');
    return `M${x(piece[0].t).toFixed(1)} ${y(0)}${top}L${x(piece.at(-1).t).toFixed(1)} ${y(0)}Z`;
  }).join('');
}

function ago(ms, span) {
  if (ms === 0) return 'now';
  return span > 60_000 ? `\u2212${ms / 60_000} min` : `\u2212${ms / 1000} s`;
}

// Plot draws into host and legend. Set unit, samples, span and fit, then draw.
export class Plot {
  constructor(host, legend) {
    this.host = host;
    this.samples = new Samples();
    this.unit = '/s';
    this.span = 300_000;
    this.fit = false; // true: scale to the limit and cut demand off
    this.cursor = null; // index among the points drawn
    this.values = {};
    legend.replaceChildren(...SERIES.map(({ key, label }) => {
      this.values[key] = el('strong');
      return el('li', { class: `series-${key}` }, el('span', { class: 'swatch', 'aria-hidden': 'true' }), `${label} `, this.values[key]);
    }));
    new ResizeObserver(() => this.draw()).observe(host);
    host.addEventListener('pointermove', (e) => this.point(e));
    host.addEventListener('pointerdown', (e) => this.point(e));
    host.addEventListener('pointerleave', () => this.leave());
    host.addEventListener('blur', () => this.leave());
    host.addEventListener('keydown', (e) => this.key(e));
  }

  point(event) {
    if (!this.shown?.length) return;
    const left = this.host.getBoundingClientRect().left;
    const t = this.time(event.clientX - left);
    this.cursor = this.shown.reduce((best, p, i) => (Math.abs(p.t - t) < Math.abs(this.shown[best].t - t) ? i : best), 0);
    this.mark();
  }

  leave() {
    if (this.cursor !== null) tip(null); // a tip of something else may be up
    this.cursor = null;
    this.mark();
  }

  key(event) {
    if (event.key === 'Escape') return this.leave();
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -1e9, End: 1e9 }[event.key];
    if (!step || !this.shown?.length) return undefined;
    event.preventDefault();
    const last = this.shown.length - 1;
    this.cursor = Math.max(0, Math.min(last, (this.cursor ?? last) + step));
    return this.mark();
  }

  // draw lays out the whole picture for the host's width.
  draw() {
    const width = Math.max(240, this.host.clientWidth);
    const height = width < 500 ? 220 : 280;
    const points = this.samples.points;
    const now = points.at(-1)?.t ?? 0;
    // One point before the window, so that lines enter from its edge.
    const first = points.findIndex((p) => p.t >= now - this.span);
    this.shown = points.slice(Math.max(0, first));
    const limit = points.at(-1)?.limit ?? 0;
    const highest = this.shown.reduce((m, p) => Math.max(m, p.limit, p.share, p.demand), limit);
    const marks = ticks(this.fit ? limit * 1.1 : highest * 1.02, 4);
    const top = this.fit ? limit * 1.2 || 1 : marks.at(-1);
    const inner = { w: width - PAD.left - PAD.right, h: height - PAD.top - PAD.bottom };
    this.x = (t) => PAD.left + inner.w * (1 - (now - t) / this.span);
    this.time = (x) => now - this.span * (1 - (x - PAD.left) / inner.w);
    this.y = (v) => PAD.top + inner.h * (1 - Math.max(0, Math.min(v / top, 1.02)));
    this.size = { width, height };

    const root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': this.describe() });
    root.append(...this.axes(marks.filter((v) => v <= top), inner));
    const clip = svg('g', { 'clip-path': 'inset(0)' });
    clip.append(
      svg('path', { class: 'area-share', d: area(this.shown, 'share', this.x, this.y) }),
      svg('path', { class: 'line-demand', d: line(this.shown, 'demand', this.x, this.y) }),
      svg('path', { class: 'line-share', d: line(this.shown, 'share', this.x, this.y) }),
      svg('path', { class: 'line-limit', d: line(this.shown, 'limit', this.x, this.y) }));
    this.hair = svg('g', { class: 'hair' });
    root.append(clip, this.hair);
    this.host.replaceChildren(root);
    this.mark();
  }

  axes(marks, inner) {
    const out = [svg('text', { class: 'axis-title', x: 2, y: 12 }, axisTitle(this.unit))];
    const right = PAD.left + inner.w;
    for (const v of marks) {
      const y = this.y(v);
      out.push(svg('line', { class: 'grid', x1: PAD.left, x2: right, y1: y, y2: y }),
        svg('text', { class: 'tick', x: PAD.left - 8, y: y + 4, 'text-anchor': 'end' }, trim(v)));
    }
    const step = this.span > 60_000 ? 60_000 : 15_000;
    const bottom = PAD.top + inner.h;
    const each = step * (inner.w < 400 && this.span / step > 4 ? 2 : 1); // room for the words
    for (let ms = 0; ms <= this.span; ms += each) {
      const x = PAD.left + inner.w * (1 - ms / this.span);
      const anchor = ms === 0 ? 'end' : ms === this.span ? 'start' : 'middle';
      out.push(svg('line', { class: 'grid', x1: x, x2: x, y1: bottom, y2: bottom + 4 }),
        svg('text', { class: 'tick', x, y: bottom + 18, 'text-anchor': anchor }, ago(ms, this.span)));
    }
    return out;
  }

  // mark updates the legend, and the cursor's line and box.
  mark() {
    if (!this.shown) return;
    const at = this.cursor === null ? null : this.shown[Math.min(this.cursor, this.shown.length - 1)];
    const p = at ?? this.shown.at(-1);
    for (const { key } of SERIES) text(this.values[key], p ? rate(p[key], this.unit) : '');
    this.hair?.replaceChildren();
    if (!at) return;
    const x = this.x(at.t);
    this.hair.append(svg('line', { x1: x, x2: x, y1: PAD.top, y2: this.size.height - PAD.bottom }),
      ...SERIES.map(({ key }) => svg('circle', { class: `dot-${key}`, cx: x, cy: this.y(at[key]), r: 3.5 })));
    const box = this.host.getBoundingClientRect();
    const seconds = Math.round((this.shown.at(-1).t - at.t) / 1000);
    tip([seconds ? `${seconds} s ago` : 'now', ...SERIES.map(({ key, label }) => `${label}: ${rate(at[key], this.unit)}`)], box.left + x, box.top + 60);
  }

  describe() {
    const p = this.samples.points.at(-1);
    if (!p) return 'No samples yet';
    return `Last ${this.span / 60_000} min. Now: limit ${rate(p.limit, this.unit)}, sum of shares ${rate(p.share, this.unit)}, ` +
      `sum of demand ${rate(p.demand, this.unit)}.`;
  }
}
