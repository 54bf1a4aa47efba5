package state

import (
	"errors"
	"os"
	"path/filepath"
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
	if err := d.Save(memory{Epoch: 7}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, fileName)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		torn := append([]byte(nil), whole[:cut]...)
		flipped := append([]byte(nil), whole...)
		flipped[cut] ^= 1
		for _, b := range [][]byte{torn, flipped} {
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			var got memory
			found, err := d.Load(&got)
			if found || !errors.Is(err, ErrTorn) && !errors.Is(err, ErrForeign) {
				t.Fatalf("damage at byte %d: found %v, err %v", cut, found, err)
			}
		}
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
