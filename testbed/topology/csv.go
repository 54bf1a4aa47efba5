package topology

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxCSV is the size in bytes of the largest table read: MaxPlaces squared cells
// of a dozen bytes, and as much again.
const maxCSV = 128 << 10

// Columns of a table that are not round trips to a place.
const (
	weightColumn = "weight"
	northColumn  = "north"
	eastColumn   = "east"
	utcColumn    = "utc" // hours
	regionColumn = "region"
)

// FromCSV reads a table of round trips in ms:
//
//	rtt_ms, weight, ams,  iad, sin
//	ams,    55,     0,    81,  160
//	iad,    95,     81.4, 0,   220
//	sin,    45,     ,     221, 0
//
// The header's first cell says nothing; the others are the places, in their order,
// and optional columns weight (1 when left out), north, east (degrees), utc
// (hours) and region, as in [Place]. Each place has one row, in any order. The
// delay from a to b is half of the round trip in row a and column b; a cell left
// empty takes the one of the other direction. Lines that begin with # are
// comments.
//
// The error names every fault with its line and what to write instead. At most
// 128 KiB are read.
func FromCSV(name string, r io.Reader) (Topology, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxCSV+1))
	if err != nil {
		return Topology{}, err
	}
	t := &table{topology: Topology{Name: name}}
	if len(data) > maxCSV {
		t.fault(1, fmt.Sprintf("the table has more than %d bytes", maxCSV), fmt.Sprintf("at most %d places", MaxPlaces))
	} else if t.read(csv.NewReader(strings.NewReader(string(data)))); t.seen != nil {
		t.finish()
	}
	if len(t.faults) > 0 {
		return Topology{}, errors.Join(t.faults...)
	}
	return t.topology, nil
}

// table is a CSV while it is read.
type table struct {
	topology Topology
	header   []string
	column   []int // of the header: position of the place, -1 for an attribute
	seen     []int // line of each place's row, 0 for none yet
	faults   []error
}

func (t *table) fault(line int, what, mend string) {
	t.faults = append(t.faults, fmt.Errorf("line %d: %s; mend: %s", line, what, mend))
}

func (t *table) read(r *csv.Reader) {
	r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace = '#', -1, true
	for {
		record, err := r.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			if t.header == nil {
				t.fault(1, "the table is empty", "a header row with the names of the places, then a row for each")
			}
			return
		case errors.As(err, &bad): // what follows cannot be told apart
			t.fault(bad.Line, bad.Err.Error(), "close the quotes, or write without any")
			return
		}
		line, _ := r.FieldPos(0)
		for i := range record {
			record[i] = strings.TrimSpace(record[i])
		}
		if t.header != nil {
			t.row(line, record)
		} else if !t.head(line, record) {
			return
		}
	}
}

// head reads the header and reports whether rows can be read by it.
func (t *table) head(line int, record []string) bool {
	before := len(t.faults)
	t.header = record
	t.column = make([]int, len(record))
	first := map[string]int{}
	for c, name := range record {
		t.column[c] = -1
		if c == 0 {
			continue
		}
		if other, twice := first[name]; twice {
			t.fault(line, fmt.Sprintf("columns %d and %d are both %q", other+1, c+1, name), "each name once")
		}
		first[name] = c
		switch name {
		case weightColumn, northColumn, eastColumn, utcColumn, regionColumn:
			continue
		}
		if !plain(name) {
			t.fault(line, fmt.Sprintf("column %d: %q cannot be the name of a place", c+1, name),
				"1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first")
		}
		t.column[c] = len(t.topology.Places)
		t.topology.Places = append(t.topology.Places, Place{Name: name, Weight: 1})
	}
	if n := len(t.topology.Places); n < 2 || n > MaxPlaces {
		t.fault(line, fmt.Sprintf("the header names %d places", n), fmt.Sprintf("2 to %d", MaxPlaces))
	}
	if len(t.faults) > before {
		return false
	}
	t.seen = make([]int, len(t.topology.Places))
	t.topology.OneWay = square(len(t.topology.Places))
	return true
}

// plain reports whether a node may have the name.
func plain(name string) bool {
	if name == "" || len(name) > 64 || strings.ContainsAny(name[:1], "._-") {
		return false
	}
	for _, b := range []byte(name) {
		letter := b|0x20 >= 'a' && b|0x20 <= 'z'
		if !letter && (b < '0' || b > '9') && b != '.' && b != '_' && b != '-' {
			return false
		}
	}
	return true
}

// row reads the row of one place.
func (t *table) row(line int, record []string) {
	i := t.topology.Index(record[0])
	switch {
	case i < 0:
		t.fault(line, fmt.Sprintf("%q is not in the header", record[0]), "one of "+strings.Join(t.topology.Names(), ", "))
		return
	case t.seen[i] > 0:
		t.fault(line, fmt.Sprintf("%s has a row already, in line %d", record[0], t.seen[i]), "one row for each place")
		return
	}
	t.seen[i] = line
	if len(record) != len(t.header) {
		t.fault(line, fmt.Sprintf("%s has %d cells, the header %d", record[0], len(record), len(t.header)), "one cell for each column; it may be empty")
	}
	for c := 1; c < min(len(record), len(t.header)); c++ {
		j := t.column[c]
		switch {
		case record[c] == "":
		case j < 0:
			t.attribute(line, i, t.header[c], record[c])
		default:
			t.roundTrip(line, i, j, record[c])
		}
	}
}

// number reads a decimal number within bounds.
func (t *table) number(line int, what, text string, least, most float64) (float64, bool) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= least && x <= most) { // NaN compares as false
		t.fault(line, fmt.Sprintf("%s: %q", what, text), fmt.Sprintf("a number from %v to %v", least, most))
		return 0, false
	}
	return x, true
}

func (t *table) attribute(line, i int, column, text string) {
	p := &t.topology.Places[i]
	what := p.Name + " " + column
	switch column {
	case weightColumn:
		w, err := strconv.ParseInt(text, 10, 64)
		if err != nil || w < 1 || w > 1_000_000 {
			t.fault(line, fmt.Sprintf("%s: %q", what, text), "a whole number from 1 to 1000000")
			return
		}
		p.Weight = w
	case northColumn:
		p.North, _ = t.number(line, what, text, -90, 90)
	case eastColumn:
		p.East, _ = t.number(line, what, text, -180, 180)
	case utcColumn:
		if h, ok := t.number(line, what, text, -12, 14); ok {
			p.Offset = time.Duration(math.Round(h*60)) * time.Minute
		}
	case regionColumn:
		if !plain(text) {
			t.fault(line, fmt.Sprintf("%s: %q", what, text), "a word such as europe or north-america")
		}
		p.Region = text
	}
}

func (t *table) roundTrip(line, i, j int, text string) {
	what := fmt.Sprintf("%s to %s", t.topology.Places[i].Name, t.topology.Places[j].Name)
	if i == j {
		t.number(line, what, text, 0, 0)
		return
	}
	if ms, ok := t.number(line, what, text, 0.002, float64(MaxRTT/time.Millisecond)); ok {
		t.topology.OneWay[i][j] = time.Duration(math.Round(ms*500)) * time.Microsecond
	}
}

// finish looks for what no row said.
func (t *table) finish() {
	if len(t.faults) > 0 {
		return // a cell that could not be read is not missing
	}
	for i, line := range t.seen {
		if line == 0 {
			t.fault(1, fmt.Sprintf("%s has no row", t.topology.Places[i].Name), "a row for each place of the header")
		}
	}
	d := t.topology.OneWay
	for i := range d {
		for j := range d {
			if i == j || d[i][j] > 0 {
				continue
			}
			if d[i][j] = d[j][i]; d[j][i] == 0 && i < j && t.seen[i] > 0 && t.seen[j] > 0 {
				t.fault(t.seen[i], fmt.Sprintf("no round trip from %s to %s, nor back", t.topology.Places[i].Name, t.topology.Places[j].Name), "a number of ms in one of the two cells")
			}
		}
	}
}
