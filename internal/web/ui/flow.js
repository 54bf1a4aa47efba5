// Loans as a flow: lenders on the left, borrowers on the right, a band for each
// loan as thick as its amount.

import { byId, el, keyed, svg, text } from './dom.js';
import { name, rate, short, shortRate } from './format.js';

const SIDES = 6; // nodes drawn on each side; the smallest are put together
const BANDS = 130; // px for all loans together
const SLOT = 34; // px a node needs for its two lines of text
const GAP = 8;
const REST = '\0rest';

// layout sums the loans up by side: {lenders, borrowers, bands}, largest first,
// with everything beyond SIDES folded into one entry.
export function layout(loans) {
  const totals = { from: new Map(), to: new Map() };
  for (const l of loans) {
    totals.from.set(l.from, (totals.from.get(l.from) ?? 0) + l.amount);
    totals.to.set(l.to, (totals.to.get(l.to) ?? 0) + l.amount);
  }
  const side = (map) => {
    const sorted = [...map].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    if (sorted.length <= SIDES) return sorted.map(([key, amount]) => ({ key, amount }));
    const rest = sorted.slice(SIDES - 1);
    return [...sorted.slice(0, SIDES - 1).map(([key, amount]) => ({ key, amount })),
      { key: REST, amount: rest.reduce((t, r) => t + r[1], 0), count: rest.length }];
  };
  const lenders = side(totals.from);
  const borrowers = side(totals.to);
  const fold = (list, key) => (list.some((n) => n.key === key) ? key : REST);
  const bands = new Map();
  for (const l of loans) {
    const key = JSON.stringify([fold(lenders, l.from), fold(borrowers, l.to)]);
    bands.set(key, (bands.get(key) ?? 0) + l.amount);
  }
  return { lenders, borrowers, bands: [...bands].map(([k, amount]) => ({ from: JSON.parse(k)[0], to: JSON.parse(k)[1], amount })) };
}

// place gives each node of a side its top, centred in height.
function place(nodes, scale, height) {
  const slots = nodes.map((n) => Math.max(SLOT, n.amount * scale));
  let y = (height - slots.reduce((a, b) => a + b, 0) - GAP * (nodes.length - 1)) / 2;
  nodes.forEach((n, i) => {
    n.thick = Math.max(2, n.amount * scale);
    n.top = y + (slots[i] - n.thick) / 2;
    n.used = 0;
    y += slots[i] + GAP;
  });
}

const label = (n) => (n.key === REST ? `${n.count} others` : name(n.key));

function sideLabels(nodes, x, anchor, sign, unit, column) {
  const most = Math.max(4, Math.floor((column - 14) / 8.5)); // letters that fit
  return nodes.flatMap((n) => {
    const middle = n.top + n.thick / 2;
    const full = label(n);
    const letters = Array.from(full);
    const shown = letters.length > most ? letters.slice(0, most - 1).join('') + '\u2026' : full;
    return [
      svg('text', { class: 'flow-name', x, y: middle - 2, 'text-anchor': anchor }, svg('title', {}, full), shown),
      svg('text', { class: 'flow-amount', x, y: middle + 13, 'text-anchor': anchor }, sign + shortRate(n.amount, unit)),
    ];
  });
}

// draw shows the loans of one budget.
export function draw(host, loans, unit) {
  const total = loans.reduce((t, l) => t + l.amount, 0);
  text(byId('flow-sum'), loans.length ? `${rate(total, unit)} on loan` : '');
  byId('flow-details').hidden = !loans.length;
  drawTable(loans, unit);
  if (!loans.length) {
    if (!host.querySelector('.empty')) host.replaceChildren(el('p', { class: 'empty muted' }, 'No loans now: every location works within its own base.'));
    return;
  }
  const { lenders, borrowers, bands } = layout(loans);
  const width = Math.max(240, host.clientWidth);
  const scale = BANDS / total;
  const need = (nodes) => nodes.reduce((h, n) => h + Math.max(SLOT, n.amount * scale) + GAP, 0);
  const height = Math.ceil(Math.max(need(lenders), need(borrowers), 120)) + 28;
  const column = Math.min(124, width * 0.3);
  const left = column;
  const right = width - column;
  place(lenders, scale, height - 28);
  place(borrowers, scale, height - 28);
  const root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `${loans.length} loans, together ${rate(total, unit)}. The table below lists them.` });
  const inside = svg('g', { transform: 'translate(0 28)' });
  root.append(svg('text', { class: 'axis-title', x: left - 10, y: 12, 'text-anchor': 'end' }, 'lend'),
    svg('text', { class: 'axis-title', x: right + 10, y: 12 }, 'borrow'), inside);
  inside.append(...drawBands(lenders, borrowers, bands, left, right, scale, unit));
  for (const [nodes, x] of [[lenders, left - 5], [borrowers, right]]) {
    inside.append(...nodes.map((n) => svg('rect', { class: 'flow-bar', x, y: n.top, width: 5, height: n.thick, rx: 1.5 })));
  }
  inside.append(...sideLabels(lenders, left - 12, 'end', '\u2212', unit, column), ...sideLabels(borrowers, right + 12, 'start', '+', unit, column));
  host.replaceChildren(root);
}

// drawBands connects the bars; bands leave and arrive in the other side's order,
// so that they cross as little as may be.
function drawBands(lenders, borrowers, bands, left, right, scale, unit) {
  const find = (list, key) => list.findIndex((n) => n.key === key);
  const ordered = bands.map((b) => ({ ...b, i: find(lenders, b.from), j: find(borrowers, b.to), thick: Math.max(1.5, b.amount * scale) }));
  for (const b of [...ordered].sort((p, q) => p.i - q.i || p.j - q.j)) {
    b.y0 = lenders[b.i].top + lenders[b.i].used + b.thick / 2;
    lenders[b.i].used += b.thick;
  }
  for (const b of [...ordered].sort((p, q) => p.j - q.j || p.i - q.i)) {
    b.y1 = borrowers[b.j].top + borrowers[b.j].used + b.thick / 2;
    borrowers[b.j].used += b.thick;
  }
  const bend = (right - left) * 0.45;
  return ordered.flatMap((b) => {
    const d = `M${left} ${b.y0}C${left + bend} ${b.y0} ${right - bend} ${b.y1} ${right} ${b.y1}`;
    const words = `${label(lenders[b.i])} lends ${label(borrowers[b.j])} ${rate(b.amount, unit)}`;
    const out = [svg('path', { class: 'flow-band', d, 'stroke-width': b.thick }, svg('title', {}, words))];
    if (b.thick >= 14 && ordered.length <= 8) {
      // A third of the way over: bands that end together are still apart there.
      out.push(svg('text', { class: 'flow-band-label', x: left + (right - left) * 0.3, y: b.y0 + (b.y1 - b.y0) * 0.216 + 4, 'text-anchor': 'middle' }, short(b.amount)));
    }
    return out;
  });
}

function drawTable(loans, unit) {
  const rows = [...loans].sort((a, b) => b.amount - a.amount).slice(0, 200);
  keyed(byId('flow-table'), rows, (l) => JSON.stringify([l.from, l.to]), () => el('tr', {}, el('td'), el('td'), el('td', { class: 'num' })),
    (tr, l) => {
      text(tr.children[0], name(l.from));
      text(tr.children[1], name(l.to));
      text(tr.children[2], rate(l.amount, unit));
    });
}
