package evaluation

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"subak/allocator"
)

// Names are those of a budget's nodes and classes, in its order.
type Names struct{ Nodes, Classes []string }

// Recorded is a trace in memory, one entry for each row of its file.
type Recorded struct {
	names Names
	times []string // of each cycle, as written
	ends  []int    // of each cycle: the row behind its last
	cells []uint32 // class*nodes+node
	rates []allocator.Rate
	legit []allocator.Rate // as rates; nil without such a column
	// Missing is the number of cells that had no row in their cycle. Their demand is 0.
	Missing int64
}

// Cycles is the number of cycles, and Rows that of rows.
func (r *Recorded) Cycles() int { return len(r.ends) }
func (r *Recorded) Rows() int   { return len(r.rates) }

// Span is the first and the last time, as written.
func (r *Recorded) Span() (first, last string) {
	if len(r.times) == 0 {
		return "", ""
	}
	return r.times[0], r.times[len(r.times)-1]
}

// MaxRows bounds a trace: 16 bytes each, 24 with legit.
const MaxRows = 50_000_000

// columns of the file, in order; the last may be left out.
var columns = [...]string{"time", "location", "class", "demand", "legit"}

// FileError is a fault of a trace, with its place.
type FileError struct {
	Line, Column int // from 1; 0 where the file as a whole is meant
	Field        string
	What, Mend   string
}

func (e *FileError) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	}
	field := ""
	if e.Field != "" {
		field = e.Field + " "
	}
	return fmt.Sprintf("%s%s%s; mend: %s", where, field, e.What, e.Mend)
}

// ReadCSV reads a trace with the columns time, location, class, demand and
// optionally legit, the legitimate part of the demand. Rows of one time stand
// together and are one cycle. A time is a number of seconds or an RFC 3339 time;
// a demand is in units per second with at most six decimals. progress, if not nil,
// is told the number of rows from time to time. The error is a *FileError or that
// of r.
func ReadCSV(r io.Reader, names Names, progress func(rows int)) (*Recorded, error) {
	p := &csvReader{csv: csv.NewReader(bufio.NewReaderSize(r, 1<<20)), out: &Recorded{names: names}, progress: progress}
	p.csv.ReuseRecord = true
	p.csv.FieldsPerRecord = -1
	if err := p.header(); err != nil {
		return nil, err
	}
	p.nodes, p.classes = indexOf(names.Nodes), indexOf(names.Classes)
	p.seen = make([]int, len(names.Nodes)*len(names.Classes))
	for {
		row, err := p.csv.Read()
		if errors.Is(err, io.EOF) {
			return p.finish()
		}
		if err != nil {
			return nil, syntax(err)
		}
		if err := p.row(row); err != nil {
			return nil, err
		}
	}
}

func indexOf(names []string) map[string]int {
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	return at
}

// syntax says what is wrong with a file that is no CSV.
func syntax(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return &FileError{parse.Line, parse.Column, "", parse.Err.Error(), "write plain CSV: time,location,class,demand"}
	}
	return err
}

type csvReader struct {
	csv            *csv.Reader
	out            *Recorded
	nodes, classes map[string]int
	width          int
	seen           []int // the cycle, from 1, in which a cell had a row last
	now            instant
	progress       func(int)
}

func (p *csvReader) fault(field int, what, mend string) error {
	line, column := p.csv.FieldPos(field)
	return &FileError{line, column, columns[field], what, mend}
}

func (p *csvReader) header() error {
	head, err := p.csv.Read()
	if errors.Is(err, io.EOF) {
		return &FileError{What: "the file is empty", Mend: "begin with the line time,location,class,demand"}
	}
	if err != nil {
		return syntax(err)
	}
	p.width = len(head)
	if p.width < len(columns)-1 || p.width > len(columns) {
		return &FileError{1, 1, "", fmt.Sprintf("%d columns", p.width), "begin with the line time,location,class,demand (and legit, if you know it)"}
	}
	for i, name := range head {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		if !strings.EqualFold(strings.TrimSpace(name), columns[i]) {
			return p.fault(i, fmt.Sprintf("is expected here, not %q", clip(name)), "begin with the line time,location,class,demand (and legit, if you know it)")
		}
	}
	if p.width == len(columns) {
		p.out.legit = []allocator.Rate{}
	}
	return nil
}

// clip keeps a foreign word short.
func clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

func (p *csvReader) row(row []string) error {
	if len(row) != p.width {
		line, _ := p.csv.FieldPos(0)
		return &FileError{line, 1, "", fmt.Sprintf("%d fields, not %d", len(row), p.width), "write one field for each column of the first line"}
	}
	if err := p.time(row[0]); err != nil {
		return err
	}
	i, ok := p.nodes[row[1]]
	if !ok {
		return p.fault(1, fmt.Sprintf("%q is no node of the budget", clip(row[1])), "write one of "+list(p.out.names.Nodes))
	}
	k, ok := p.classes[row[2]]
	if !ok {
		return p.fault(2, fmt.Sprintf("%q is no class of the budget", clip(row[2])), "write one of "+list(p.out.names.Classes))
	}
	demand, err := p.rate(3, row[3])
	if err != nil {
		return err
	}
	cell := k*len(p.nodes) + i
	if p.seen[cell] == len(p.out.times) {
		return p.fault(1, fmt.Sprintf("%s asks for class %s a second time at %s", row[1], row[2], clip(row[0])), "keep one row for each location and class of a time, or add them up")
	}
	p.seen[cell] = len(p.out.times)
	if p.out.legit != nil {
		legit, err := p.rate(4, row[4])
		if err != nil {
			return err
		}
		if legit > demand {
			return p.fault(4, fmt.Sprintf("%s is more than the demand %s", row[4], row[3]), "write the part of the demand that is legitimate")
		}
		p.out.legit = append(p.out.legit, legit)
	}
	p.out.cells = append(p.out.cells, uint32(cell))
	p.out.rates = append(p.out.rates, demand)
	return p.count()
}

func (p *csvReader) count() error {
	rows := len(p.out.rates)
	if rows > MaxRows {
		return p.fault(0, fmt.Sprintf("is in row %d", rows), fmt.Sprintf("keep a trace under %d rows: cut it, or use longer cycles", MaxRows))
	}
	if p.progress != nil && rows%(1<<16) == 0 {
		p.progress(rows)
	}
	return nil
}

// list writes names for people, not too many.
func list(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// instant is a time of a trace: nanoseconds, in one of two forms that do not mix.
type instant struct {
	nanos int64
	clock bool
}

// time begins a cycle where a row has another time than the one before.
func (p *csvReader) time(text string) error {
	if n := len(p.out.times); n > 0 && p.out.times[n-1] == text {
		return nil
	}
	var at instant
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		at = instant{t.UnixNano(), true}
	} else if micros, ok := millionths(text); ok && micros <= math.MaxInt64/1000 {
		at = instant{micros * 1000, false}
	} else {
		return p.fault(0, fmt.Sprintf("%q is no time", clip(text)), "write seconds, such as 12.5, or a time such as 2026-11-30T12:00:00Z")
	}
	if len(p.out.times) > 0 {
		switch {
		case at.clock != p.now.clock:
			return p.fault(0, fmt.Sprintf("%q is of another form than the one before", clip(text)), "write all times as seconds, or all as RFC 3339")
		case at.nanos <= p.now.nanos:
			return p.fault(0, fmt.Sprintf("%s is not after %s", clip(text), p.out.times[len(p.out.times)-1]), "sort the rows by time, those of one time together and written alike")
		}
		p.close()
	}
	p.now = at
	p.out.times = append(p.out.times, strings.Clone(text))
	return nil
}

// close ends a cycle.
func (p *csvReader) close() {
	first := 0
	if n := len(p.out.ends); n > 0 {
		first = p.out.ends[n-1]
	}
	p.out.Missing += int64(len(p.seen) - (len(p.out.rates) - first))
	p.out.ends = append(p.out.ends, len(p.out.rates))
}

func (p *csvReader) finish() (*Recorded, error) {
	if len(p.out.times) == 0 {
		return nil, &FileError{What: "the file has no rows", Mend: "write a row for each time, location and class"}
	}
	p.close()
	if p.progress != nil {
		p.progress(len(p.out.rates))
	}
	return p.out, nil
}

// maxDemand keeps the sums of a cycle far from overflow: 10^9 units/s a cell.
const maxDemand = 1_000_000_000

func (p *csvReader) rate(field int, text string) (allocator.Rate, error) {
	micros, ok := millionths(text)
	switch {
	case !ok:
		return 0, p.fault(field, fmt.Sprintf("%q is no rate", clip(text)), "write units per second, 0 or more, such as 1234.5")
	case micros > maxDemand*int64(allocator.Unit):
		return 0, p.fault(field, fmt.Sprintf("%s is too much", clip(text)), fmt.Sprintf("write at most %d", maxDemand))
	}
	return allocator.Rate(micros), nil
}

// millionths reads a plain decimal number of at most six decimals, 0 or more.
func millionths(text string) (int64, bool) {
	whole, part, point := strings.Cut(text, ".")
	if !digits(whole) || point && (!digits(part) || len(part) > 6) {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > math.MaxInt64/2_000_000 {
		return 0, false
	}
	n *= 1_000_000
	if point {
		f, _ := strconv.ParseInt(part+"000000"[len(part):], 10, 64) // at most six digits
		n += f
	}
	return n, true
}

func digits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// Replay returns the trace from its beginning.
func (r *Recorded) Replay() Trace { return &replay{Recorded: r} }

type replay struct {
	*Recorded
	at int
}

func (r *replay) Nodes() int   { return len(r.names.Nodes) }
func (r *replay) Classes() int { return len(r.names.Classes) }

func (r *replay) Next(demand, legit []allocator.Rate) (bool, error) {
	if r.at == len(r.ends) {
		return false, nil
	}
	clear(demand)
	clear(legit)
	first, last := 0, (r.Classes()-1)*r.Nodes()
	if r.at > 0 {
		first = r.ends[r.at-1]
	}
	for row := first; row < r.ends[r.at]; row++ {
		c := int(r.cells[row])
		demand[c] = r.rates[row]
		if r.legit != nil && c >= last {
			legit[c-last] = r.legit[row]
		}
	}
	r.at++
	return true, nil
}

// CSVWriter writes a trace that ReadCSV reads. Errors are those of its writer.
type CSVWriter struct {
	out   *bufio.Writer
	names Names
	line  []byte
}

// NewCSVWriter begins a trace.
func NewCSVWriter(w io.Writer, names Names) (*CSVWriter, error) {
	c := &CSVWriter{out: bufio.NewWriter(w), names: names}
	for _, name := range slices.Concat(names.Nodes, names.Classes) {
		if strings.ContainsAny(name, ",\"\r\n") {
			return nil, fmt.Errorf("name %q cannot stand in a trace", name)
		}
	}
	_, err := fmt.Fprintln(c.out, strings.Join(columns[:4], ","))
	return c, err
}

// Write writes one cycle: demand[class*nodes+node], micro-units per second. A cell
// below 0 has no row: nothing is known of it.
func (c *CSVWriter) Write(at string, demand []allocator.Rate) error {
	n := len(c.names.Nodes)
	for cell, d := range demand {
		if d < 0 {
			continue
		}
		c.line = fmt.Appendf(c.line[:0], "%s,%s,%s,%d.%06d\n", at, c.names.Nodes[cell%n], c.names.Classes[cell/n], d/allocator.Unit, d%allocator.Unit)
		if _, err := c.out.Write(c.line); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes what is buffered.
func (c *CSVWriter) Flush() error { return c.out.Flush() }
