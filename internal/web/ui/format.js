// Figures as people read them. Pure functions.

const MINUS = '\u2212';
const NBSP = '\u00a0';

// grouped writes a number with thousands separators and at most the decimals
// that matter: 0.35, 4.2, 1,234.
export function grouped(n) {
  if (!Number.isFinite(n)) return '?';
  const size = Math.abs(n);
  const decimals = size >= 100 || Number.isInteger(n) ? 0 : size >= 1 ? 1 : 2;
  const out = size.toLocaleString('en-US', { maximumFractionDigits: decimals });
  return n < 0 && out !== '0' ? MINUS + out : out;
}

// short writes a number in three digits: 950, 1.24k, 18.0k, 3.10M.
export function short(n) {
  if (!Number.isFinite(n)) return '?';
  const size = Math.abs(n);
  const sign = n < 0 ? MINUS : '';
  for (const [limit, factor, suffix] of [[999.5e9, 1e12, 'T'], [999.5e6, 1e9, 'G'], [999.5e3, 1e6, 'M'], [999.5, 1e3, 'k']]) {
    if (size >= limit) {
      const v = size / factor;
      return sign + v.toFixed(v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2) + suffix;
    }
  }
  return sign + (size >= 10 || Number.isInteger(size) ? size.toFixed(0) : size >= 0.05 ? size.toFixed(1) : size > 0 ? '<0.1' : '0');
}

// trim drops the zeros that short pads with: 20k for the marks of an axis.
export const trim = (n) => short(n).replace(/\.0+(?=\D|$)|(\.\d*?)0+(?=\D|$)/, '$1');

// rate writes a rate with its unit, to the unit: 20,000/s, 5.20 MB/s.
export function rate(n, unit) {
  return unit === 'B/s' ? shortRate(n, unit) : grouped(n) + unit;
}

// shortRate writes a rate in three digits: 20.0k/s, 5.20 MB/s.
export function shortRate(n, unit) {
  const [, digits, prefix] = /^(.*?)([kMGT]?)$/.exec(short(n));
  return unit === 'B/s' ? `${digits}${NBSP}${prefix}B/s` : digits + prefix + unit;
}

// axisTitle is what the vertical axis of a plot counts.
export const axisTitle = (unit) => (unit === 'B/s' ? 'bytes per second' : 'per second');

// span writes a length of time in milliseconds: 240 ms, 3.2 s, 4 min, 3 h 20 min, 5 d 3 h.
export function span(ms) {
  if (!Number.isFinite(ms) || ms < 0) return '?';
  if (ms < 999.5) return Math.round(ms) + NBSP + 'ms';
  const s = ms / 1000;
  if (s < 60) return (s < 9.95 ? s.toFixed(1) : Math.round(s)) + NBSP + 's';
  const min = Math.floor(s / 60);
  if (min < 60) return min + NBSP + 'min';
  const h = Math.floor(min / 60);
  if (h < 48) return h + NBSP + 'h' + (min % 60 ? ' ' + (min % 60) + NBSP + 'min' : '');
  return Math.floor(h / 24) + NBSP + 'd' + (h % 24 ? ' ' + (h % 24) + NBSP + 'h' : '');
}

// name makes a foreign name safe to look at: control and direction-changing
// characters show as a box, and overlong names are cut.
export function name(s, most = 80) {
  const clean = String(s ?? '').replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, '\u25a1');
  const parts = Array.from(clean);
  return parts.length > most ? parts.slice(0, most - 1).join('') + '\u2026' : clean || '(no name)';
}

// names joins names for a sentence, the first few only.
export function names(list, most = 4) {
  const shown = list.slice(0, most).map((s) => name(s)).join(', ');
  return list.length > most ? `${shown} and ${list.length - most} more` : shown;
}

// ticks returns round values from 0 to at least max, about n of them.
export function ticks(max, n) {
  if (!(max > 0)) return [0, 1];
  const rough = max / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const out = [0];
  while (out.at(-1) < max * 0.9999) out.push(Number((step * out.length).toPrecision(12)));
  return out;
}
