package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type memory struct {
	Epoch uint64
	Lent  []string
}

func open(t *testing.T, path, cluster, node string) *Dir {
	t.Helper()
	d, err := Open(path, cluster, node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestSavedStateComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "dir")
	d := open(t, path, "edge", "ams")
	var got memory
	if found, err := d.Load(&got); found || err != nil {
		t.Fatalf("empty directory: found %v, err %v", found, err)
	}
	for i := range uint64(3) {
		if err := d.Save(memory{Epoch: i, Lent: []string{"fra"}}); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := d.Load(&got); !found || err != nil || got.Epoch != 2 || len(got.Lent) != 1 {
		t.Fatalf("found %v, err %v, got %+v", found, err, got)
	}
	left, _ := filepath.Glob(filepath.Join(path, "*"))
	if len(left) != 2 {
		t.Errorf("files left: %v, want state and lock only", left)
	}
}

func TestEveryTornFileIsRecognised(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, "edge", "ams")
	if err := d.Save(memory{Epoch: 7, Lent: []string{"fra", "lhr"}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, fileName)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, damaged []byte) {
		t.Helper()
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := d.Load(new(memory)); found || !errors.Is(err, ErrTorn) {
			t.Fatalf("%s: found %v, err %v, want torn", what, found, err)
		}
	}
	for at := range whole {
		check(fmt.Sprintf("cut off at byte %d", at), whole[:at])
		for bit := range 8 {
			flipped := bytes.Clone(whole)
			flipped[at] ^= 1 << bit
			check(fmt.Sprintf("bit %d of byte %d flipped", bit, at), flipped)
		}
	}
	check("a byte appended", append(bytes.Clone(whole), ' '))
	check("written twice", append(bytes.Clone(whole), whole...))
	check("zeros of the same length", make([]byte, len(whole)))
	check("too large", append(bytes.Clone(whole), make([]byte, sizeMax)...))
}

func FuzzLoadOfAnyBytesGivesAFaultAndNothingElse(f *testing.F) {
	f.Add([]byte("{}\n{}"))
	f.Add([]byte(`{"format":2,"cluster":"edge","node":"ams","sha256":""}` + "\n[]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := t.TempDir()
		d := open(t, path, "edge", "ams")
		if err := os.WriteFile(filepath.Join(path, fileName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := d.Load(new(memory)); found || err == nil {
			t.Errorf("found %v, err %v", found, err)
		}
	})
}

func TestAFileOfALaterVersionIsNotTakenForTorn(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, "edge", "ams")
	h := header{Format: format + 1, Cluster: "edge", Node: "ams"}
	payload := []byte(`{"Epoch":"as text now"}`)
	h.SHA256 = h.sum(payload)
	if err := os.WriteFile(filepath.Join(path, fileName), append(append(h.line(), '\n'), payload...), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := d.Load(new(memory)); found || !errors.Is(err, ErrFormat) {
		t.Errorf("found %v, err %v", found, err)
	}
}

func TestAMemoryOfAnotherShapeIsTorn(t *testing.T) {
	d := open(t, t.TempDir(), "edge", "ams")
	if err := d.Save([]string{"not", "a", "memory"}); err != nil {
		t.Fatal(err)
	}
	if found, err := d.Load(new(memory)); found || !errors.Is(err, ErrTorn) {
		t.Errorf("found %v, err %v", found, err)
	}
}

func TestWhatACrashedSaveLeftIsRemovedAtTheNextStart(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, "edge", "ams")
	if err := d.Save(memory{Epoch: 7}); err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	for _, name := range []string{"state.json.123", "state.json.987"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got memory
	d = open(t, path, "edge", "ams")
	left, _ := filepath.Glob(filepath.Join(path, "*"))
	if found, err := d.Load(&got); !found || err != nil || len(left) != 2 {
		t.Errorf("files left: %v, found %v, err %v", left, found, err)
	}
}

func TestAMemoryThatCouldNotBeLoadedIsNotSaved(t *testing.T) {
	d := open(t, t.TempDir(), "edge", "ams")
	if err := d.Save(memory{Epoch: 7}); err != nil {
		t.Fatal(err)
	}
	if err := d.Save(memory{Lent: []string{strings.Repeat("x", sizeMax)}}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("err %v", err)
	}
	var got memory
	if found, err := d.Load(&got); !found || err != nil || got.Epoch != 7 {
		t.Errorf("found %v, err %v, got %+v", found, err, got)
	}
}

func TestAStateFileOfAnotherNodeIsForeign(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, "edge", "ams")
	if err := d.Save(memory{Epoch: 7}); err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	other := open(t, path, "edge", "fra")
	if found, err := other.Load(new(memory)); found || !errors.Is(err, ErrForeign) {
		t.Fatalf("found %v, err %v", found, err)
	}
}

func TestASecondProcessIsKeptOut(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, "edge", "ams")
	if _, err := Open(path, "edge", "ams"); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v, want ErrLocked", err)
	}
	_ = d.Close()
	open(t, path, "edge", "ams")
}

func TestAFailedSaveKeepsTheOldFile(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, "edge", "ams")
	if err := d.Save(memory{Epoch: 7}); err != nil {
		t.Fatal(err)
	}
	if err := d.Save(func() {}); err == nil {
		t.Fatal("saving what cannot be encoded gave no error")
	}
	gone := *d
	gone.path = filepath.Join(path, "missing")
	if err := gone.Save(memory{Epoch: 8}); err == nil {
		t.Fatal("saving into a missing directory gave no error")
	}
	var got memory
	if found, err := d.Load(&got); !found || err != nil || got.Epoch != 7 {
		t.Fatalf("found %v, err %v, got %+v", found, err, got)
	}
}
