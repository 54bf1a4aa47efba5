package ledger

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// treatment says what the explorer does with each field of the state: "" means
// that the canonical form tells values apart; else why it need not.
//
// A new field makes TestExplorerCopiesAndTellsApartEveryField fail until it is
// listed here, copied in cloneLedger if it holds a pointer, slice or map, and
// written by the encoder if a rule reads it.
func treatment() map[string]map[string]string {
	const (
		constant = "the same for the whole exploration"
		scratch  = "set anew before each use"
		derived  = "follows from fields that are written"
		shown    = "only reported"
		anew     = "every pass of the explorer computes it before a rule reads it"
	)
	return map[string]map[string]string{
		"Ledger": {
			"cfg": "only Stored can change, and what is read of it is written", "inc": "", "seq": "", "ownHigh": "", "superseded": "",
			"peers": "", "log": "", "last": "", "books": "", "listed": "",
			"layouts": "a row comes with its epoch, so it can always be read",
			"cur":     "", "act": "", "strayed": "", "position": derived, "selfPos": derived, "parent": derived,
			"acked": "", "adoptedAt": "", "ackFrom": "nothing is carved here", "wait": "", "proved": "", "recovering": "", "quarantine": "", "startedAt": "",
			"quarTerm": "", "formerLent": "", "shortcut": "", "lent": "",
			"version": "written as whether the disk is up to date", "held": "no disk is full here", "onDisk": "", "memoryOld": shown, "distrusted": "no clock is distrusted here",
			"frozen": "", "digest": shown, "market": scratch, "plan": scratch,
		},
		"peer": {"row": "", "full": "", "layout": derived, "at": "", "floor": ""},
		"book": {
			"name": "a world has one budget", "grain": derived, "index": "", "ceiling": "", "demand": anew, "in": "", "caps": "", "out": "",
			"outTotal": derived, "outUntil": derived, "outKnown": derived,
			"loans": "", "pubCeiling": shown, "moved": shown, "want": anew, "keep": anew, "releasedNow": shown,
		},
		"borrowed":   {"amount": "", "end": ""},
		"release":    {"seq": "", "amount": ""},
		"lentRow":    {"seq": "", "hInc": "", "hSeq": "", "amount": "", "end": ""},
		"publishLog": {"entries": ""},
		"published":  {"seq": "", "at": ""},
		"Row": {
			"Node": "", "Inc": "", "Seq": "", "Term": "", "Epoch": "", "Acked": "", "Recovering": "", "Digest": shown,
			"Clock": "the ledger does not read it", "Group": constant, "Heard": "", "Only": "", "Extra": "", "Sections": "",
		},
		"Entry":   {"Of": "", "Heard": ""},
		"Heard":   {"Inc": "", "Seq": ""},
		"Section": {"Ceiling": "", "Demand": "", "Loans": "", "Caps": ""},
		"Loan":    {"To": "", "Amount": ""},
		"Cap":     {"Lender": "", "Seq": "", "Amount": ""},
		"Stored": {
			"Incarnation": "", "Term": "", "Epoch": "", "Body": derived, "Active": "", "Strayed": "", "Recovering": "",
			"Ceilings": "", "Wait": "", "Floors": "", "LentTo": "", "LentUnknown": "",
		},
		"StoredCeiling": {"Budget": "a world has one budget", "Ceiling": ""},
		"StoredFloor":   {"Node": "", "Incarnation": ""},
		"Step":          {"Until": "", "Rate": ""},
		"EpochID":       {"Version": "", "Hash": ""},
		"actor":         {"l": "", "plane": "", "written": "written as whether the disk is up to date"},
		"layout":        {"epoch": derived, "first": derived, "books": derived, "covered": derived},
	}
}

// immutable says that values of this type are shared on purpose.
func immutable(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[*Row](), reflect.TypeFor[*Epoch](), reflect.TypeFor[*Directory](), reflect.TypeFor[*Stored]():
		return true
	}
	return false
}

// within makes an unexported field readable and writable.
func within(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// sharedMemory lists what may change in x and is the same memory in y.
func sharedMemory(path string, x, y reflect.Value, seen map[uintptr]bool) (list []string) {
	if immutable(x.Type()) || strings.HasSuffix(path, ".books.loans") { // loans are those of a row
		return nil
	}
	switch x.Kind() {
	case reflect.Pointer:
		if x.IsNil() || seen[x.Pointer()] {
			return nil
		}
		seen[x.Pointer()] = true
		if x.Pointer() == y.Pointer() {
			return []string{path}
		}
		return sharedMemory(path, x.Elem(), y.Elem(), seen)
	case reflect.Slice:
		if x.Len() > 0 && x.Pointer() == y.Pointer() {
			return []string{path}
		}
		for i := range x.Len() {
			list = append(list, sharedMemory(path, x.Index(i), y.Index(i), seen)...)
		}
	case reflect.Struct:
		for i := range x.NumField() {
			list = append(list, sharedMemory(path+"."+x.Type().Field(i).Name, within(x, i), within(y, i), seen)...)
		}
	case reflect.Map, reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer:
		return []string{path + " is of a kind that this test does not know how to compare"}
	}
	return list
}

// prober changes one value of a state after the other and notes whether the
// canonical form changes with it.
type prober struct {
	w     *smallWorld
	s     *instant
	enc   encoder
	plain []byte
	told  map[string]bool // by type and field
	// fields is treatment().
	fields map[string]map[string]string
}

// probe looks at v, which lies in the named fields, outermost first. What is known
// to be told apart is not tried again.
func (p *prober) probe(v reflect.Value, names []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Type() == reflect.TypeFor[*Epoch]() {
			for _, e := range p.w.epochs {
				p.try(v, reflect.ValueOf(e), names)
			}
			return
		}
		p.probe(v.Elem(), names)
	case reflect.Slice:
		for i := range v.Len() {
			p.probe(v.Index(i), names)
		}
		if v.Len() > 0 {
			p.try(v, v.Slice(0, v.Len()-1), names)
		}
	case reflect.Struct:
		fields := p.fields[v.Type().Name()]
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if why, listed := fields[name]; listed && why == "" {
				p.probe(within(v, i), append(names[:len(names):len(names)], v.Type().Name()+"."+name))
			}
		}
	case reflect.Bool:
		p.try(v, reflect.ValueOf(!v.Bool()).Convert(v.Type()), names)
	case reflect.String:
		p.try(v, reflect.ValueOf(v.String()+"!").Convert(v.Type()), names)
	default:
		for _, d := range []int64{1, -1, 2, -2, 3, -3, 40} {
			if v.CanInt() {
				p.try(v, reflect.ValueOf(v.Int()+d).Convert(v.Type()), names)
			} else if u := int64(v.Uint()) + d; u >= 0 {
				p.try(v, reflect.ValueOf(uint64(u)).Convert(v.Type()), names)
			}
		}
	}
}

// try sets v to x for a moment. A value that no state can have may make the encoder
// panic; that says nothing.
func (p *prober) try(v, x reflect.Value, names []string) {
	known := true
	for _, n := range names {
		known = known && p.told[n]
	}
	if known {
		return
	}
	old := reflect.ValueOf(v.Interface())
	defer func() {
		_ = recover()
		v.Set(old)
	}()
	v.Set(x)
	p.enc.encode(p.w, p.s)
	if !bytes.Equal(p.enc.buf, p.plain) {
		for _, n := range names {
			p.told[n] = true
		}
	}
}

func (p *prober) state(w *smallWorld, s *instant) {
	p.w, p.s = w, s
	p.enc.encode(w, s)
	p.plain = bytes.Clone(p.enc.buf)
	for i := range w.nodes {
		if s.actors[i] != nil {
			p.probe(reflect.ValueOf(s.actors[i]), nil)
		}
		p.probe(reflect.ValueOf(&s.disk[i]).Elem(), nil)
		for j := range w.nodes {
			p.probe(reflect.ValueOf(&s.mail[i][j][0]).Elem(), nil)
		}
	}
}

// The exploration is worth nothing if a clone shares memory with its original, or
// if states that behave differently count as one.
func TestExplorerCopiesAndTellsApartEveryField(t *testing.T) {
	p := prober{told: map[string]bool{}, fields: treatment()}
	for _, w := range []*smallWorld{worldOfTerms(), worldOfCrashes(), worldOfTrio(), worldOfAnEdit(), worldOfJoining(), worldOfForce()} {
		count := 0
		x := &explorer{w: w, workers: 1, most: 1 << 30, each: func(s *instant) {
			if count++; count%10 != 0 {
				return
			}
			p.state(w, s)
			for i := range w.nodes {
				if s.actors[i] != nil {
					checkClone(t, s.actors[i].l)
				}
			}
		}}
		x.run(3)
	}
	for _, v := range []any{Ledger{}, peer{}, book{}, borrowed{}, release{}, lentRow{}, publishLog{}, published{}, layout{},
		Row{}, Heard{}, Entry{}, Section{}, Loan{}, Cap{}, Stored{}, StoredCeiling{}, StoredFloor{}, Step{}, EpochID{}, actor{}} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			name := typ.Name() + "." + typ.Field(i).Name
			why, listed := p.fields[typ.Name()][typ.Field(i).Name]
			switch {
			case !listed:
				t.Errorf("%s is new: copy it, encode it and list it in treatment()", name)
			case why == "" && !p.told[name] && v != (EpochID{}):
				t.Errorf("%s may differ between states that count as one", name)
			}
		}
	}
}

func checkClone(t *testing.T, l *Ledger) {
	t.Helper()
	l.market, l.plan = market{}, nil
	c := cloneLedger(l)
	if !reflect.DeepEqual(l, c) {
		t.Fatal("a clone differs from its original")
	}
	list := sharedMemory("Ledger", reflect.ValueOf(l).Elem(), reflect.ValueOf(c).Elem(), map[uintptr]bool{})
	if len(list) > 0 {
		t.Fatalf("a clone shares memory with its original: %v", list)
	}
}
