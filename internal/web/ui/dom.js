// Building and updating the page. Everything foreign (names of nodes, classes,
// budgets, reasons) goes in as text nodes or attributes, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

export const byId = (id) => document.getElementById(id);

// el makes an element: props are properties or, with a dash or for aria and
// data, attributes; children are nodes or strings.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key === 'class') node.className = value;
    else if (key.includes('-') || key === 'role' || key === 'scope') node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

// svg makes an SVG element with attributes.
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// text sets an element's text only when it changed, so that a screen reader's
// live region stays silent and a selection survives.
export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

// attr sets an attribute only when it changed; null removes it.
export function attr(node, key, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(key);
  else if (node.getAttribute(key) !== String(value)) node.setAttribute(key, value);
}

// keyed makes parent's children match items, reusing the element of the same
// key, so that focus, hover and scroll survive an update.
export function keyed(parent, items, key, create, update) {
  const old = parent.keyedNodes ?? new Map();
  const now = new Map();
  let cursor = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    if (now.has(k)) continue; // a duplicate name: shown once
    let node = old.get(k);
    if (!node) node = create(item);
    update(node, item);
    now.set(k, node);
    if (node === cursor) cursor = cursor.nextElementSibling;
    else parent.insertBefore(node, cursor);
  }
  for (const [k, node] of old) if (now.get(k) !== node) node.remove();
  parent.keyedNodes = now;
}

const GLYPHS = {
  ok: 'M4.2 8.4 7 11.1l5-6',
  warn: 'M8 4v5M8 11.6v.3',
  bad: 'M5 5l6 6M11 5l-6 6',
  idle: 'M5 8h6',
};
const SHAPES = {
  ok: 'M8 .8a7.2 7.2 0 1 0 0 14.4A7.2 7.2 0 0 0 8 .8z',
  warn: 'M8 .7 15.6 14.6H.4z',
  bad: 'M5 .8h6L15.2 5v6L11 15.2H5L.8 11V5z',
  idle: 'M8 .8a7.2 7.2 0 1 0 0 14.4A7.2 7.2 0 0 0 8 .8z',
};

// icon is the sign of a level (ok, warn, bad, idle). Each has its own shape: no
// meaning rests on colour alone.
export function icon(level) {
  return svg('svg', { class: 'icon', viewBox: '0 0 16 16', 'data-level': level, 'aria-hidden': 'true' },
    svg('path', { class: 'shape', d: SHAPES[level] }),
    svg('path', { class: 'glyph', d: GLYPHS[level] }));
}

// setIcon replaces the icon at the start of node when its level changed.
export function setIcon(node, level) {
  const old = node.querySelector(':scope > .icon');
  if (old?.dataset.level === level) return;
  old?.remove();
  node.prepend(icon(level));
}

// segments makes a row of exclusive choices out of a radiogroup element.
// options is [[value, label], ...]; change is called with the chosen value.
export function segments(group, options, chosen, change) {
  const buttons = options.map(([value, label]) => el('button', {
    type: 'button', role: 'radio', textContent: label, 'data-value': value, 'aria-checked': String(value === chosen),
  }));
  const choose = (button) => {
    for (const b of buttons) {
      b.setAttribute('aria-checked', String(b === button));
      b.tabIndex = b === button ? 0 : -1;
    }
    change(button.dataset.value);
  };
  group.replaceChildren(...buttons);
  for (const b of buttons) {
    b.tabIndex = b.dataset.value === chosen ? 0 : -1;
    b.addEventListener('click', () => choose(b));
  }
  group.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
    next.focus();
    choose(next);
  });
}

// tip shows lines of text near a point of the viewport; tip(null) hides it.
export function tip(lines, x = 0, y = 0) {
  const box = byId('tip');
  if (!lines) {
    box.hidden = true;
    return;
  }
  box.replaceChildren(...lines.map((line) => el('div', {}, line)));
  box.hidden = false;
  const { offsetWidth: w, offsetHeight: h } = box;
  const left = Math.max(8, Math.min(x + 14, document.documentElement.clientWidth - w - 8));
  const top = y - h - 12 > 8 ? y - h - 12 : y + 18;
  box.style.left = `${left}px`;
  box.style.top = `${top}px`;
}
