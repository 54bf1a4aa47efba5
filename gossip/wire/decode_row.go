package wire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"subak/allocator"
	"subak/allocator/ledger"
)

// rowFrame is a row whose fields were read but whose bins were not. They alias
// the packet.
type rowFrame struct {
	Header
	marks, term uint64
	digest      uint32
	clock       uint32 // 0: not told
	sections    []byte // or changes
	base        uint64 // distance of the base's seq; 0: all sections
	copy        copyFrame
	vector      uint64 // the digest of incs if those are in the packet
	incs        []byte // nil if not in the packet
	heard, wait []byte
}

// row reads a row: the frame, then who the refs are, then the bins. Only when
// all of it held does it keep an inline vector and learn new names.
func (d *Decoder) row(r *reader, h Header, fields int) (*ledger.Row, error) {
	f := d.frame(r, h, fields)
	if err := r.err(); err != nil {
		return nil, err
	}
	ep := d.epochs(f.Epoch)
	if ep == nil {
		return nil, &UnknownEpochError{ID: f.Epoch}
	}
	n, err := d.names.of(ep)
	if err != nil {
		return nil, err
	}
	if err := d.resolve(n); err != nil {
		return nil, err
	}
	if f.Ref >= len(d.ids) {
		return nil, malformed(ReasonMismatch, "node")
	}
	row := &ledger.Row{
		Node: d.ids[f.Ref], Inc: f.Inc, Seq: f.Seq,
		Term:  time.Duration(f.term) * time.Millisecond,
		Epoch: f.Epoch, Digest: f.digest, Clock: f.clock,
		Acked: f.marks&markAcked != 0, Recovering: f.marks&markRecovering != 0,
	}
	if d.stale(row) {
		return nil, StaleError{}
	}
	d.short = f.base != 0
	if f.base == 0 {
		err = d.sections(row, &f, ep)
	} else {
		err = d.changes(row, &f)
	}
	if err != nil {
		return nil, err
	}
	if err := d.wait(row, f.wait); err != nil {
		return nil, err
	}
	if h.Kind == KindCopy {
		err = d.only(row, &f.copy)
	} else {
		err = d.heard(row, &f)
	}
	if err != nil {
		return nil, err
	}
	if len(f.incs) > 0 {
		d.vectors.put(f.vector, f.incs)
	}
	return row, d.learn(n)
}

// frame reads the fields of a row after those that all packets share.
func (d *Decoder) frame(r *reader, h Header, fields int) (f rowFrame) {
	f.marks = r.rowHeader(&h)
	f.Header = h
	f.term = r.uint(MaxTermMillis, "term")
	f.digest = uint32(r.uint(1<<32-1, "digest"))
	f.sections = r.bin(MaxLong, "sections")
	if f.term == 0 {
		r.fail(ReasonRange, "term")
	}
	fields -= h.Kind.fields() - headFields
	if h.Kind != KindRow {
		f.base = r.base(f.Seq, h.Kind == KindDelta)
	}
	if h.Kind == KindCopy {
		f.copy = r.copyFrame()
		fields += 2 // there is no vector and no heard
	} else {
		if fields > 0 {
			f.vector, f.incs = r.vector()
		}
		if fields > 1 {
			f.heard = r.bin(MaxLong, "heard")
		}
	}
	if fields > 2 {
		f.wait = r.bin(MaxLong, "wait")
	}
	d.extras = d.extras[:0]
	if fields > 3 {
		d.readExtras(r)
	}
	if fields > 4 {
		f.clock = uint32(r.uint(1<<32-1, "clock"))
	}
	_ = r.rest(fields - 5) // the fault, if any, is looked at by the caller
	return f
}

// vector reads either form of the vector field.
func (r *reader) vector() (digest uint64, incs []byte) {
	c := r.code("vector")
	if !isBin(c) {
		return r.uintAfter(c, 1<<64-1, "vector"), nil
	}
	incs = r.binAfter(c, 8*MaxRefs, "vector")
	return digestOf(incs), incs
}

// readExtras reads names into d.extras: each once, sorted.
func (d *Decoder) readExtras(r *reader) {
	for range r.array(MaxExtras, "extras") {
		name := r.name("extras")
		if r.why != ReasonNone {
			return
		}
		if len(d.extras) > 0 && string(d.extras[len(d.extras)-1]) >= string(name) {
			r.fail(ReasonOrder, "extras")
			return
		}
		d.extras = append(d.extras, name)
	}
}

// resolve fills d.ids. Names that the directory lacks get the numbers it would
// give them next; learn makes that true once the row has passed.
func (d *Decoder) resolve(n *names) error {
	d.ids = append(d.ids[:0], n.ids...)
	next := d.dir.Len()
	for _, name := range d.extras {
		id, known := d.dir.Lookup(string(name))
		switch {
		case !known:
			id = ledger.NodeID(next)
			next++
		case n.ref(id) >= 0:
			return malformed(ReasonOrder, "extras")
		}
		d.ids = append(d.ids, id)
	}
	if d.learned+next-d.dir.Len() > MaxLearned {
		return malformed(ReasonDirectory, "extras")
	}
	d.width = next
	return nil
}

// learn adds the row's new names to the directory. A name outside the rosters is
// of an epoch that this node never saw (rule E4, trap 23): the wait set is unsafe
// without it.
func (d *Decoder) learn(n *names) error {
	before := d.dir.Len()
	for k, name := range d.extras {
		if want := d.ids[len(n.ids)+k]; int(want) >= before {
			if got := d.dir.Intern(string(name)); got != want {
				return malformed(ReasonDirectory, "extras")
			}
			d.learned++
		}
	}
	return nil
}

// heard fills row.Heard, as long as the directory will be. It stays nil if the
// row does not carry it.
func (d *Decoder) heard(row *ledger.Row, f *rowFrame) error {
	if len(f.heard) == 0 {
		if len(f.incs) > 0 {
			return malformed(ReasonMismatch, "heard")
		}
		return nil
	}
	incs := f.incs
	if incs == nil {
		if incs = d.vectors.get(f.vector); incs == nil {
			return d.unknownVector(row.Node, f.vector)
		}
	}
	if len(incs) != 8*len(d.ids) {
		return malformed(ReasonMismatch, "vector")
	}
	r := reader{b: f.heard}
	row.Heard = make([]ledger.Heard, d.width)
	for ref, id := range d.ids {
		h, ok := heardOf(row.Seq, binary.BigEndian.Uint64(incs[8*ref:]), r.varint(1<<64-1, "heard"))
		if !ok {
			r.fail(ReasonRange, "heard")
		}
		row.Heard[id] = h
	}
	if r.left() > 0 {
		r.fail(ReasonTrailing, "heard")
	}
	return r.err()
}

// heardOf puts together what the row seq heard of a name. It reports false for
// what no row can have heard.
func heardOf(seq, inc, code uint64) (h ledger.Heard, ok bool) {
	if code == heardNever {
		return h, true
	}
	h.Inc = inc
	if code >= heardRow {
		h.Seq = unzigzag(seq, code-heardRow)
	}
	return h, h.Inc != 0 && h.Seq <= MaxValue && (code < heardRow || h.Seq != 0)
}

func (d *Decoder) unknownVector(node ledger.NodeID, digest uint64) error {
	if int(node) >= d.dir.Len() {
		node = -1 // not learned from a row that was not read
	}
	return &UnknownVectorError{Node: node, Digest: digest}
}

// wait fills row.Extra in the order of refs.
func (d *Decoder) wait(row *ledger.Row, b []byte) error {
	r := reader{b: b}
	for ref := 0; r.left() > 0 && r.why == ReasonNone; {
		out := int(r.varint(uint64(len(d.ids)-ref), "wait"))
		if out == 0 && ref > 0 {
			r.fail(ReasonOrder, "wait")
		}
		ref += out
		in := int(r.varint(uint64(len(d.ids)-ref), "wait"))
		if in == 0 {
			r.fail(ReasonOrder, "wait")
		}
		row.Extra = append(row.Extra, d.ids[ref:ref+in]...)
		ref += in
	}
	return r.err()
}

// amount reads the amount of a loan or cap in the form that the row has.
func (d *Decoder) amount(r *reader, field string) allocator.Rate {
	if !d.short {
		return r.rate(field)
	}
	v := r.varint(1<<64-1, field)
	shift := 8 * (v % amountShifts)
	if v /= amountShifts; v > MaxValue>>shift {
		r.fail(ReasonRange, field)
		return 0
	}
	return allocator.Rate(v << shift)
}

// said is the sections of a row without loans and caps: their bytes alone say what
// they mean.
type said struct {
	bytes    []byte
	sections []ledger.Section
}

// sections fills row.Sections. Where the node's row before said the same, they
// share its memory: most rows of most nodes do.
func (d *Decoder) sections(row *ledger.Row, f *rowFrame, ep *ledger.Epoch) error {
	if s, ok := d.said[row.Node]; ok && bytes.Equal(s.bytes, f.sections) {
		row.Sections = s.sections
		return nil
	}
	if err := d.freshSections(row, f, ep); err != nil {
		return err
	}
	if int(row.Node) < d.dir.Len() && len(f.sections) <= MaxPacket && plain(row.Sections) {
		d.said[row.Node] = said{slices.Clone(f.sections), row.Sections}
	} else {
		delete(d.said, row.Node)
	}
	return nil
}

// plain reports whether no section has loans or caps.
func plain(sections []ledger.Section) bool {
	return !slices.ContainsFunc(sections, func(s ledger.Section) bool { return s.Loans != nil || s.Caps != nil })
}

// freshSections reads the sections. The memory of all of them is taken at once, as
// much as the epoch's budgets need, but no more than the bytes can fill.
func (d *Decoder) freshSections(row *ledger.Row, f *rowFrame, ep *ledger.Epoch) error {
	const least = 3 // bytes of a section
	r := &reader{b: f.sections}
	if r.left() == 0 {
		return nil
	}
	cells := 0
	for i := range ep.Budgets {
		cells += ep.Budgets[i].Classes
	}
	row.Sections = make([]ledger.Section, 0, min(len(ep.Budgets), r.left()/least))
	d.cells = make([]allocator.Rate, min(cells, r.left()))
	defer func() { d.cells = nil }()
	for r.left() > 0 {
		if len(row.Sections) == MaxSections {
			r.fail(ReasonLength, "sections")
		}
		s := d.section(r, row, f.Ref)
		if err := r.err(); err != nil {
			return err
		}
		row.Sections = append(row.Sections, s)
	}
	return nil
}

func (d *Decoder) section(r *reader, row *ledger.Row, self int) (s ledger.Section) {
	shape := r.varint(MaxClasses<<2|hasLoans|hasCaps, "sections")
	k := int(shape >> 2)
	if k == 0 {
		r.fail(ReasonRange, "demand")
	}
	if k > r.left() {
		r.fail(ReasonTruncated, "demand")
	}
	if r.why != ReasonNone {
		return s
	}
	s.Ceiling = r.rate("ceiling")
	s.Demand = d.demandOf(k)
	for i := range s.Demand {
		s.Demand[i] = r.demand()
	}
	if shape&hasLoans != 0 {
		s.Loans = d.loans(r, self, 1)
	}
	if shape&hasCaps != 0 {
		s.Caps = d.caps(r, row.Seq, self, 1)
	}
	return s
}

// demandOf returns room for the demand of k classes.
func (d *Decoder) demandOf(k int) []allocator.Rate {
	if k > len(d.cells) { // not what the epoch says; the ledger will refuse it
		return make([]allocator.Rate, k)
	}
	room := d.cells[:k:k]
	d.cells = d.cells[k:]
	return room
}

func (r *reader) demand() allocator.Rate {
	return allocator.Rate(r.varint(MaxValue/uint64(ledger.DemandGrain), "demand")) * ledger.DemandGrain
}

func (r *reader) rate(field string) allocator.Rate { return allocator.Rate(r.varint(MaxValue, field)) }

// count reads how many entries of at least size bytes each follow, and refuses fewer than
// least.
func (d *Decoder) count(r *reader, size, least int, field string) int {
	n := int(r.varint(uint64(len(d.ids)), field))
	if n < least {
		r.fail(ReasonRange, field)
	}
	if n > r.left()/size {
		r.fail(ReasonTruncated, field)
	}
	if r.why != ReasonNone {
		return 0
	}
	return n
}

// nextRef reads a ref above the one before it and other than the publisher's.
func (d *Decoder) nextRef(r *reader, last *int, self int, field string) ledger.NodeID {
	ref := int(r.varint(uint64(len(d.ids)-1), field))
	if ref <= *last || ref == self {
		r.fail(ReasonOrder, field)
	}
	*last = ref
	return d.ids[ref]
}

func (d *Decoder) loans(r *reader, self, least int) []ledger.Loan {
	n := d.count(r, 2, least, "loans")
	if n == 0 {
		return nil
	}
	loans := make([]ledger.Loan, n)
	last := -1
	for i := range loans {
		loans[i] = ledger.Loan{To: d.nextRef(r, &last, self, "loans"), Amount: d.amount(r, "loans")}
		if loans[i].Amount == 0 {
			r.fail(ReasonRange, "loans")
		}
	}
	slices.SortFunc(loans, func(a, b ledger.Loan) int { return cmp.Compare(a.To, b.To) })
	return loans
}

func (d *Decoder) caps(r *reader, seq uint64, self, least int) []ledger.Cap {
	n := d.count(r, 3, least, "caps")
	if n == 0 {
		return nil
	}
	caps := make([]ledger.Cap, n)
	last := -1
	for i := range caps {
		caps[i].Lender = d.nextRef(r, &last, self, "caps")
		caps[i].Seq = unzigzag(seq, r.varint(1<<64-1, "caps"))
		caps[i].Amount = d.amount(r, "caps")
		if caps[i].Seq == 0 || caps[i].Seq > MaxValue {
			r.fail(ReasonRange, "caps")
		}
	}
	slices.SortFunc(caps, func(a, b ledger.Cap) int { return cmp.Compare(a.Lender, b.Lender) })
	return caps
}
