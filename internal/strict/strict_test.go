package strict

import (
	"strings"
	"testing"
	"time"
)

func TestDurationsNeedAUnit(t *testing.T) {
	if d, err := ParseDuration("1m30s"); err != nil || d != 90*time.Second {
		t.Errorf("got %v, %v", d, err)
	}
	for text, mend := range map[string]string{"200": "write 200ms", "fast": "such as 200ms", "": "such as"} {
		_, err := ParseDuration(text)
		if err == nil || !strings.Contains(err.Error(), mend) {
			t.Errorf("%q: got %v, want %q", text, err, mend)
		}
	}
}

func TestNearestNamesAreSlipsOfTheFingerOnly(t *testing.T) {
	known := []string{"cluster", "nodes", "budgets", "mode"}
	for word, want := range map[string]string{"clutser": "cluster", "Nodes": "nodes", "node": "nodes", "budget": "budgets", "elephant": "", "": ""} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// A struct behind a pointer is there only when the file has it, with its defaults.
func TestOptionalPartsAreNilUnlessWritten(t *testing.T) {
	type part struct {
		Size int    `yaml:"size" default:"3"`
		Name string `yaml:"name"`
	}
	var whole struct {
		Part  *part `yaml:"part,omitempty"`
		Other *part `yaml:"other,omitempty"`
	}
	r := New("x.yaml", "write it")
	r.Decode("x.yaml", []byte("part:\n  name: a\n"), &whole)
	if !r.OK() || whole.Other != nil || whole.Part == nil || *whole.Part != (part{3, "a"}) {
		t.Errorf("got %+v, faults %v", whole, r.Faults())
	}
}

func TestAnEmptyFileSaysWhereToStart(t *testing.T) {
	r := New("x.yaml", "look at steady.yaml")
	r.Decode("x.yaml", nil, &struct{}{})
	if fs := r.Faults(); len(fs) != 1 || fs[0].Mend != "look at steady.yaml" {
		t.Errorf("got %v", fs)
	}
}

// A thousand budgets with a list of classes each return over two levels a
// thousand times, and are no deeper for it; what is written one in another is.
func TestNestingIsDepthNotLength(t *testing.T) {
	type class struct {
		Name string `yaml:"name"`
	}
	type budget struct {
		Name    string  `yaml:"name"`
		Classes []class `yaml:"classes"`
	}
	var file struct {
		Budgets []budget `yaml:"budgets"`
	}
	r := New("x.yaml", "write it")
	r.Decode("x.yaml", []byte("budgets:\n"+strings.Repeat("  - name: a\n    classes:\n      - name: b\n      - name: c\n", 1000)), &file)
	if !r.OK() || len(file.Budgets) != 1000 {
		t.Errorf("%d budgets, faults %v", len(file.Budgets), r.Faults())
	}
	for unit, lines := range map[string]string{"keys": "a:\n", "dashes": "-\n"} {
		var text strings.Builder
		for i := range 100 {
			text.WriteString(strings.Repeat(" ", i) + lines)
		}
		r := New("x.yaml", "write it")
		r.Decode("x.yaml", []byte(text.String()), &file)
		if fs := r.Faults(); len(fs) != 1 || !strings.Contains(fs[0].Error(), "x.yaml:33: nested too deeply") {
			t.Errorf("%s one in another: got %v", unit, fs)
		}
	}
}
