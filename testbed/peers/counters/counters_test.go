package counters

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const plain = `package enforce

func (l *Limiter) count(c *tally, cost int64) {
	c.admitted.Add(cost) // counts
	if cost > 1 {
		c.again.refused.Add(2 * cost)
	}
	l.used.Add(cost) // decides
	_ = c.admitted.Load()
}
`

// source is a directory with a package enforce.
func source(t *testing.T, files map[string]string) string {
	repo := t.TempDir()
	for name, text := range files {
		path := filepath.Join(repo, "enforce", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return repo
}

func TestOnlyCountersAreStripped(t *testing.T) {
	got, n, err := strip("x.go", []byte(plain))
	want := strings.NewReplacer(
		"c.admitted.Add(cost)", "_, _ = &c.admitted, cost",
		"c.again.refused.Add(2 * cost)", "_, _ = &c.again.refused, 2 * cost").Replace(plain)
	if err != nil || n != 2 || string(got) != want {
		t.Errorf("%d, %v\n%s\nwant\n%s", n, err, got, want)
	}
	if _, _, err := strip("x.go", []byte("no Go")); err == nil {
		t.Error("no error for what is no Go")
	}
}

func TestTheOverlayHasTheFilesThatCount(t *testing.T) {
	repo := source(t, map[string]string{"a.go": plain, "b.go": "package enforce\n", "a_test.go": plain})
	name, err := without(repo, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &overlay); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(overlay.Replace[filepath.Join(repo, "enforce", "a.go")])
	if err != nil || len(overlay.Replace) != 1 || strings.Contains(string(other), "admitted.Add") {
		t.Errorf("%v: %s, %v", overlay, other, err)
	}
}

func TestAPackageWithoutCountersIsAnError(t *testing.T) {
	for _, files := range []map[string]string{nil, {"b.go": "package enforce\n"}, {"b.go": "no Go"}} {
		if _, err := without(source(t, files), t.TempDir()); err == nil {
			t.Errorf("no error for %v", files)
		}
	}
}

// The package as it is: every build of the probe compiles.
func TestTheProbeIsBuiltEitherWay(t *testing.T) {
	for _, counting := range []bool{true, false} {
		p, err := start(t.Context(), "../../..", t.TempDir(), counting)
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		for _, goroutines := range []int{1, 2} {
			if took, err := p.decide(1000, goroutines); err != nil || took <= 0 {
				t.Errorf("counting %v: %v, %v", counting, took, err)
			}
		}
	}
}
