package strict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fault is one mistake in the configuration.
type Fault struct {
	// Place is where the mistake was written: FILE:LINE, FILE:LINE:COLUMN for
	// mistakes in the YAML itself, "env NAME" or "flag --NAME".
	Place string `json:"place"`
	// File, Line and Column are the parts of Place; zero where there are none.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Field is the path of the field, such as budgets[0].classes[1].reserve;
	// empty for a mistake in the YAML itself.
	Field string `json:"field,omitempty"`
	What  string `json:"what"`
	Mend  string `json:"mend"`
}

// Error is PLACE: FIELD: what is wrong; mend: what to write.
func (f Fault) Error() string {
	field := f.Field
	if field != "" {
		field += ": "
	}
	return fmt.Sprintf("%s: %s%s; mend: %s", f.Place, field, f.What, f.Mend)
}

// Faults is every mistake of one configuration, by place.
type Faults []Fault

// Error is one line for each fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single fault.
func (fs Faults) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}

// Origin is the place a value came from.
type Origin struct {
	File         string // a file's path, "env NAME" or "flag --NAME"
	Line, Column int    // from 1; 0 where there is none
}

// Fault makes a fault of this place.
func (o Origin) Fault(field, what, mend string) Fault {
	f := Fault{Place: o.File, Field: field, What: what, Mend: mend}
	if o.Line > 0 {
		f.File, f.Line, f.Column = o.File, o.Line, o.Column
		f.Place = fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	return f
}

// Report collects faults and remembers where each field was written.
type Report struct {
	main     Origin            // stands in for fields that were written nowhere
	origins  map[string]Origin // by field path
	bad      map[string]bool   // fields with a fault
	broken   map[string]bool   // fields whose value could not be read at all
	misspelt map[string]bool   // fields that an unknown one was probably meant to be
	faults   Faults
	start    string // mend of an empty file
}

// New begins a report about the file main, which stands in for fields that were
// written nowhere. start is the mend of an empty file.
func New(main, start string) *Report {
	return &Report{
		main: Origin{File: main, Line: 1}, start: start, origins: map[string]Origin{},
		bad: map[string]bool{}, broken: map[string]bool{}, misspelt: map[string]bool{},
	}
}

// Given reports whether a field was written at all.
func (r *Report) Given(path string) bool { _, ok := r.origins[path]; return ok }

// Place returns where path was written, or the nearest part around it.
func (r *Report) Place(path string) Origin {
	for ; path != ""; path = parent(path) {
		if o, ok := r.origins[path]; ok {
			return o
		}
	}
	return r.main
}

// Bad reports whether the field has a fault; of "", whether a file is no YAML.
func (r *Report) Bad(path string) bool { return r.bad[path] }

// OK reports whether nothing was found yet.
func (r *Report) OK() bool { return len(r.faults) == 0 }

// Written returns the paths of all fields that were written, in order.
func (r *Report) Written() []string { return slices.Sorted(maps.Keys(r.origins)) }

// Override notes that the value of path comes from another place than before.
func (r *Report) Override(path string, from Origin) { r.origins[path] = from }

// parent cuts the last part off a path: a.b[1] gives a.b, that gives a.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// Unreadable reports a value that could not be read. Later checks of it and of
// what belongs inside it stay silent: one mistake gives one message.
func (r *Report) Unreadable(at Origin, path, what, mend string) {
	r.faults = append(r.faults, at.Fault(path, what, mend))
	r.bad[path] = true
	r.broken[path] = true
}

// Fault reports a value that was read but does not do.
func (r *Report) Fault(path, what, mend string) {
	for p := path; p != ""; p = parent(p) {
		if r.broken[p] || r.misspelt[p] && !r.Given(p) {
			r.bad[path] = true
			return
		}
	}
	if !r.bad[path] {
		r.faults = append(r.faults, r.Place(path).Fault(path, what, mend))
		r.bad[path] = true
	}
}

// Faults returns what was found, by file in order of appearance, then line.
func (r *Report) Faults() Faults {
	rank := map[string]int{}
	for _, f := range r.faults {
		if _, ok := rank[f.File]; !ok {
			rank[f.File] = len(rank)
		}
	}
	slices.SortStableFunc(r.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(rank[a.File], rank[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.faults
}

// Nearest returns the known name closest to word, or "" when none is close
// enough to be a slip of the finger.
func Nearest(word string, known []string) string {
	best, least := "", 1+max(1, min(3, len(word)/3))
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the slips between two short words: a letter wrong, missing or
// too many, or two neighbours swapped (optimal string alignment).
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			wrong := last[j]
			if a[i] != b[j] {
				wrong++
			}
			row[j+1] = min(wrong, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Suggestion says what to write in place of an unknown name.
func Suggestion(word string, known []string) string {
	if best := Nearest(word, known); best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	if len(known) == 0 {
		return "define it first"
	}
	return "write " + OneOf(known)
}

// OneOf lists a few names in words.
func OneOf(known []string) string {
	const most = 24
	if len(known) > most {
		return "one of " + strings.Join(known[:most], ", ") + ", ..."
	}
	if len(known) == 1 {
		return known[0]
	}
	return "one of " + strings.Join(known, ", ")
}
