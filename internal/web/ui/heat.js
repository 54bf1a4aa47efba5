// The heat map: a table of locations by classes. Each cell is a button with its
// figure; colour only helps the eye, by lightness within one hue.

import { byId, el, keyed, text, attr, tip } from './dom.js';
import { name, rate, short, shortRate } from './format.js';

export const METRICS = [['demand', 'Demand'], ['target', 'Share'], ['refused', 'Refused']];
const NOTES = {
  demand: 'What each location is asked for, refused requests included.',
  target: 'What the allocation gives each cell now.',
  refused: 'Demand above the share: counted here for this node, estimated for the others.',
};

const TURN = 0.6;

const value = (location, metric, k) => location[metric]?.[k] ?? 0;
const sum = (location, metric) => (location[metric] ?? []).reduce((a, b) => a + b, 0);

// heat maps a figure to 0..1 by its square root: a flood in one cell must not
// wash out all others.
export const heat = (v, max) => (max > 0 && v > 0 ? Math.sqrt(Math.min(1, v / max)) : 0);

// paint sets a cell's colour. The scale has two parts, pale to strong up to TURN
// and strong to deep from there. The strong colour in the middle is one on which
// dark and light figures read equally well, and there the figures turn.
export function paint(node, level) {
  const deep = level > TURN;
  const part = deep ? (level - TURN) / (1 - TURN) : level / TURN;
  node.style.setProperty('--v', `${Math.round(part * 100)}%`);
  attr(node, 'data-deep', deep ? '' : null);
  attr(node, 'data-zero', level === 0 ? '' : null);
}

// Heat draws budget b. choose(node, class) is called on a click.
export class Heat {
  constructor(table, choose) {
    this.table = table;
    this.choose = choose;
    this.metric = 'demand';
    this.order = 'roster';
    this.chosen = null; // 'node\0class'
    this.head = el('tr');
    this.body = el('tbody');
    this.foot = el('tr', { class: 'total' });
    table.replaceChildren(el('caption', { class: 'hidden' }, 'Figures by location and class; choose a cell for its explanation'),
      el('thead', {}, this.head), this.body, el('tfoot', {}, this.foot));
    table.addEventListener('keydown', (e) => this.key(e));
  }

  draw(b, self) {
    const classes = (b.classes ?? []).map((c) => c.name);
    const cells = [...(b.cells ?? [])];
    if (this.order === 'high') cells.sort((x, y) => sum(y, this.metric) - sum(x, this.metric));
    const max = cells.reduce((m, c) => Math.max(m, ...(c[this.metric] ?? [])), 0);
    attr(this.table, 'data-metric', this.metric);
    this.drawHead(b, classes);
    keyed(this.body, cells, (c) => c.node, () => el('tr', {}, el('th', { scope: 'row' }, el('span', { class: 'where' }))),
      (tr, c) => this.drawRow(tr, c, b, classes, max, self));
    this.drawFoot(b, classes, cells);
    this.drawLegend(max, b.unit);
    text(byId('heat-note'), cells.length ? NOTES[this.metric] : 'No location is known yet.');
  }

  drawHead(b, classes) {
    keyed(this.head, ['\0where', ...classes, '\0total'], (c) => c, (c) => el('th', { scope: 'col', class: c === '\0where' ? '' : 'num' }),
      (th, c) => {
        const label = c === '\0where' ? 'Location' : c === '\0total' ? 'All' : name(c);
        text(th, label);
        const k = classes.indexOf(c);
        attr(th, 'title', k >= 0 ? `${label}: reservation ${rate(b.classes[k].reservation, b.unit)}, priority ${k + 1} of ${classes.length}` : null);
      });
  }

  drawRow(tr, c, b, classes, max, self) {
    attr(tr, 'data-live', String(c.live));
    attr(tr, 'data-self', c.node === self ? '' : null);
    const where = tr.firstElementChild.firstElementChild;
    text(where, name(c.node));
    attr(where, 'data-note', c.node === self ? 'this node' : c.live ? null : 'not live');
    attr(tr.firstElementChild, 'title', `${name(c.node)}: enforces ${rate(c.share, b.unit)}, base in force ${rate(c.ceiling, b.unit)}`);
    const items = [...classes.map((cls, k) => ({ cls, k })), { cls: '\0total', k: -1 }];
    this.rowCells(tr, items, c, b, max);
  }

  // rowCells keeps the row's data cells in step with the classes.
  rowCells(tr, items, c, b, max) {
    while (tr.children.length > items.length + 1) tr.lastElementChild.remove();
    items.forEach(({ cls, k }, i) => {
      let td = tr.children[i + 1];
      if (!td || td.dataset.cls !== cls) {
        const fresh = k < 0 ? el('td', { class: 'num sum' }) : this.cell(c.node, cls);
        fresh.dataset.cls = cls;
        if (td) td.replaceWith(fresh);
        else tr.append(fresh);
        td = fresh;
      }
      if (k < 0) {
        text(td, short(sum(c, this.metric)));
        return;
      }
      const button = td.firstElementChild;
      const v = value(c, this.metric, k);
      text(button, short(v));
      paint(button, heat(v, max));
      attr(button, 'aria-pressed', String(this.chosen === `${c.node}\0${cls}`));
      button.lines = this.lines(c, cls, k, b);
      attr(button, 'aria-label', button.lines.join(', '));
    });
  }

  cell(node, cls) {
    const button = el('button', { type: 'button', class: 'cell', tabIndex: -1 });
    const show = () => {
      const r = button.getBoundingClientRect();
      tip(button.lines, r.left + r.width / 2, r.top);
    };
    button.addEventListener('click', () => this.choose(node, cls));
    button.addEventListener('pointerenter', show);
    button.addEventListener('pointerleave', () => tip(null));
    button.addEventListener('focus', () => { if (button.matches(':focus-visible')) show(); });
    button.addEventListener('blur', () => tip(null));
    return el('td', {}, button);
  }

  lines(c, cls, k, b) {
    return [`${name(c.node)} / ${name(cls)}${c.live ? '' : ' (not live)'}`,
      ...METRICS.map(([m, label]) => `${label}: ${rate(value(c, m, k), b.unit)}`)];
  }

  drawFoot(b, classes, cells) {
    const total = (k) => cells.reduce((t, c) => t + (k < 0 ? sum(c, this.metric) : value(c, this.metric, k)), 0);
    const items = [['\0where', 'All'], ...classes.map((c, k) => [c, short(total(k))]), ['\0total', short(total(-1))]];
    keyed(this.foot, items, (i) => i[0], (i) => (i[0] === '\0where' ? el('th', { scope: 'row' }) : el('td', { class: 'num' })), (td, i) => text(td, i[1]));
    // One cell is in the tab order; arrows move from there.
    const buttons = this.body.querySelectorAll('.cell');
    if (buttons.length && !this.body.querySelector('.cell[tabindex="0"]')) buttons[0].tabIndex = 0;
  }

  // drawLegend labels the scale at its start, middle (a quarter of the highest
  // figure, by the square root) and end.
  drawLegend(max, unit) {
    const legend = byId('heat-legend');
    if (!legend.firstChild) {
      legend.append(el('span', { class: 'scale' }), el('span', { class: 'scale-labels' }, el('span'), el('span'), el('span')));
    }
    attr(legend, 'data-metric', this.metric);
    const labels = legend.lastElementChild.children;
    text(labels[0], '0');
    text(labels[1], max > 0 ? short(max / 4) : '');
    text(labels[2], max > 0 ? shortRate(max, unit) : '');
  }

  key(event) {
    const button = event.target.closest('.cell');
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!button || !move) return;
    event.preventDefault();
    const row = button.closest('tr');
    const rows = [...this.body.children];
    const next = rows[rows.indexOf(row) + move[0]]?.children[button.parentElement.cellIndex + move[1]]?.querySelector('.cell');
    if (!next) return;
    button.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}
