package report

import (
	"fmt"
	"strconv"
	"strings"
)

// pathWriter rewrites absolute paths with relative steps of tenths of a point.
// Steps are differences of rounded places, so that errors do not add up.
type pathWriter struct {
	b            strings.Builder
	x, y         int  // where the path is
	along        int  // a level step that is not written yet
	verb         byte // last written
	pendingSpace bool // a number was written
	dotted       bool // and has a point, so that another point begins the next
}

// shortPath shortens the path data of vgsvg: M, L, A and Z with absolute
// coordinates, as gonum's lines, polygons and circles need.
func shortPath(d string) (string, error) {
	var w pathWriter
	for len(d) > 0 {
		verb := d[0]
		end := 1
		for end < len(d) && !strings.ContainsRune("MLAZQC", rune(d[end])) {
			end++
		}
		if err := w.add(verb, d[1:end]); err != nil {
			return "", err
		}
		d = d[end:]
	}
	w.flush()
	return w.b.String(), nil
}

func (w *pathWriter) add(verb byte, args string) error {
	n, err := numbers(args)
	if err != nil {
		return err
	}
	switch {
	case verb == 'M' && len(n) == 2:
		w.flush()
		w.write('M', round(n[0]), round(n[1]))
		w.x, w.y = round(n[0]), round(n[1])
	case verb == 'L' && len(n) == 2:
		w.line(round(n[0]), round(n[1]))
	case verb == 'A' && len(n) == 7:
		w.flush()
		x, y := round(n[5]), round(n[6])
		w.write('a', round(n[0]), round(n[1]), 0, 10*int(n[3]), 10*int(n[4]), x-w.x, y-w.y)
		w.x, w.y = x, y
	case verb == 'Z' && len(n) == 0:
		w.flush()
		w.write('z')
	default:
		return fmt.Errorf("report: path verb %q with %q is not one we draw with", verb, args)
	}
	return nil
}

// line goes to a place by the shortest verb. A step of nothing is left out, and
// level steps the same way are one: a share that stays is a short path.
func (w *pathWriter) line(x, y int) {
	dx, dy := x-w.x, y-w.y
	w.x, w.y = x, y
	if dy == 0 {
		if (dx > 0) != (w.along > 0) {
			w.flush()
		}
		w.along += dx
		return
	}
	w.flush()
	if dx == 0 {
		w.write('v', dy)
	} else {
		w.write('l', dx, dy)
	}
}

// flush writes the level step.
func (w *pathWriter) flush() {
	if w.along != 0 {
		w.write('h', w.along)
		w.along = 0
	}
}

// write appends a verb, unless it repeats the last, and its numbers.
func (w *pathWriter) write(verb byte, ns ...int) {
	if verb != w.verb || verb == 'M' || verb == 'z' {
		w.b.WriteByte(verb)
		w.verb, w.pendingSpace = verb, false
	}
	for _, n := range ns {
		text := tenths(n)
		if w.pendingSpace && text[0] != '-' && !(w.dotted && text[0] == '.') {
			w.b.WriteByte(' ')
		}
		w.b.WriteString(text)
		w.pendingSpace, w.dotted = true, strings.Contains(text, ".")
	}
}

func numbers(s string) ([]float64, error) {
	var ns []float64
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil, fmt.Errorf("report: path: %w", err)
		}
		ns = append(ns, v)
	}
	return ns, nil
}
