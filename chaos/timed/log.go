package timed

import (
	"fmt"
	"strings"
	"time"

	"subak/gossip/wire"
)

// lastLines is how many lines are kept of a run that is told.
const lastLines = 150

// log keeps the last moments of a run as text. Runs without an audience have
// none.
type log struct {
	lines []string // a ring
	n     int
	// reader reads rows for the log alone: what is told of a run must not change it.
	reader *guard
}

func (l *log) add(line string) {
	l.lines[l.n%len(l.lines)] = line
	l.n++
}

func (l *log) String() string {
	var b strings.Builder
	for i := max(0, l.n-len(l.lines)); i < l.n; i++ {
		b.WriteString(l.lines[i%len(l.lines)])
		b.WriteByte('\n')
	}
	return b.String()
}

// note writes down a decision of h.
func (w *world) note(h *host, format string, args ...any) {
	if w.log != nil {
		w.log.add(fmt.Sprintf("%s %s at %d %s", time.Duration(w.now), h.name, h.reading(), fmt.Sprintf(format, args...)))
	}
}

func (w *world) noteFault(what string, f Fault) {
	if w.log != nil {
		w.log.add(fmt.Sprintf("%s %s: %s", time.Duration(w.now), what, f))
	}
}

// noteRow writes down a row that h takes in.
func (w *world) noteRow(h *host, p parcel) {
	if w.log == nil {
		return
	}
	head, err := wire.Peek(p.packet)
	if err != nil || head.Kind != wire.KindRow {
		w.note(h, "takes a packet of kind %v from %s (%v)", head.Kind, p.as.name, err)
		return
	}
	m, err := w.log.reader.dec.Decode(p.packet)
	if err != nil || m.Row == nil {
		w.note(h, "takes a row (%d,%d) from %s: %v", head.Inc, head.Seq, p.as.name, err)
		return
	}
	var b strings.Builder
	if id, ok := w.log.reader.dir.Lookup(h.name); ok && int(id) < len(m.Row.Heard) {
		fmt.Fprintf(&b, " heard (%d,%d)", m.Row.Heard[id].Inc, m.Row.Heard[id].Seq)
	}
	fmt.Fprintf(&b, " epoch %v acked %v", m.Row.Epoch, m.Row.Acked)
	for i, s := range m.Row.Sections {
		fmt.Fprintf(&b, " [%d: ceiling %d demand %d loans %v caps %v]", i, s.Ceiling, s.Demand, s.Loans, s.Caps)
	}
	w.note(h, "takes the row (%d,%d) of %s:%s", head.Inc, head.Seq, p.as.name, b.String())
}
