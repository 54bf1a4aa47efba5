package ledger

// layoutsMax is how many epochs' layouts are kept beside those that the newest
// rows of peers need.
const layoutsMax = 64

// layout says which account each section of a row is about. A row lists its
// sections in the order of its own epoch; accounts are matched by name, because
// a budget's place may differ between epochs.
type layout struct {
	epoch   *Epoch
	books   []*book // by section; nil for a budget that this ledger does not keep
	covered int     // sections with an account
}

// section returns the part of r about b, nil if r has none.
func (y *layout) section(r *Row, b *book) *Section {
	if i := b.index; i >= 0 && i < len(y.books) && y.books[i] == b {
		return &r.Sections[i]
	}
	for i := range y.books {
		if y.books[i] == b {
			return &r.Sections[i]
		}
	}
	return nil
}

// layoutOf returns the layout of a known epoch, nil if the ledger was never
// told of it.
func (l *Ledger) layoutOf(id EpochID) *layout {
	for i := len(l.layouts) - 1; i >= 0; i-- {
		if l.layouts[i].epoch.ID == id {
			return l.layouts[i]
		}
	}
	return nil
}

// learn registers e, which is valid, so that rows under it can be read.
func (l *Ledger) learn(e *Epoch) {
	if l.layoutOf(e.ID) != nil {
		return
	}
	y := &layout{epoch: e, books: make([]*book, len(e.Budgets))}
	l.bind(y)
	if len(l.layouts) >= layoutsMax+len(l.peers) {
		l.forgetLayout()
	}
	l.layouts = append(l.layouts, y)
}

// bind finds the accounts of y's sections among the present ones.
func (l *Ledger) bind(y *layout) {
	y.covered = 0
	for i := range y.books {
		y.books[i] = l.bookNamed(y.epoch.Budgets[i].Name)
		if y.books[i] != nil {
			y.covered++
		}
	}
}

// forgetLayout drops the oldest layout that no peer's newest row needs.
func (l *Ledger) forgetLayout() {
	for i, y := range l.layouts {
		used := l.cur != nil && y.epoch.ID == l.cur.ID
		for j := range l.peers {
			used = used || l.peers[j].layout == y
		}
		if !used {
			l.layouts = append(l.layouts[:i], l.layouts[i+1:]...)
			return
		}
	}
}

func (l *Ledger) bookNamed(name string) *book {
	for _, b := range l.books {
		if b.name == name {
			return b
		}
	}
	return nil
}
