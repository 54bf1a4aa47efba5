package scenario

import (
	"embed"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"subak/internal/config"
	"subak/internal/contention"
	"subak/internal/strict"
	"subak/testbed/evidence"
)

//go:embed files/*.yaml
var files embed.FS

// Files returns every scenario of the testbed, by the name of its file.
func Files() ([]Scenario, error) {
	entries, err := files.ReadDir("files")
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	var all []Scenario
	var faults strict.Faults
	for _, e := range entries {
		text, err := files.ReadFile(path.Join("files", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("scenario: %w", err)
		}
		s, bad := parse(e.Name(), text)
		faults = append(faults, bad...)
		all = append(all, s.each()...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return all, nil
}

// each are the scenarios that s stands for: itself, or one for every contention
// scenario.
func (s *Scenario) each() []Scenario {
	if s.Trace == nil || s.Trace.Name != Each {
		return []Scenario{*s}
	}
	var all []Scenario
	for _, name := range contention.Names() {
		one, trace := *s, *s.Trace
		trace.Name = name
		one.Trace = &trace
		one.Name = s.Name + "-" + strings.ToLower(name)
		one.Title = s.Title + ": " + name + ", " + contention.Title(name)
		all = append(all, one)
	}
	return all
}

// Parse reads one scenario; name is the file's, which messages repeat. The error is
// a [strict.Faults] with everything that is wrong. A trace called Each is
// refused here: such a file is several scenarios, see [ParseAll].
func Parse(name string, text []byte) (Scenario, error) {
	all, err := ParseAll(name, text)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("scenario %s: it is %d scenarios", name, len(all))
	}
	if err != nil {
		return Scenario{}, err
	}
	return all[0], nil
}

// ParseAll reads the scenarios of one file.
func ParseAll(name string, text []byte) ([]Scenario, error) {
	s, faults := parse(name, text)
	if len(faults) > 0 {
		return nil, faults
	}
	return s.each(), nil
}

func parse(name string, text []byte) (Scenario, strict.Faults) {
	var s Scenario
	strict.SetDefaults(reflect.ValueOf(&s).Elem())
	r := strict.New(name, "start from a copy of steady.yaml")
	r.Decode(name, text, &s)
	s.fill()
	if !r.Bad("") {
		c := checker{Report: r, s: &s}
		c.check()
		if want := strings.TrimSuffix(path.Base(name), ".yaml"); s.Name != "" && s.Name != want {
			c.Fault("name", fmt.Sprintf("%q is not the file's", s.Name), "write "+want+", or rename the file")
		}
	}
	return s, r.Faults()
}

// Validate reports all faults of a scenario that was not read from a file.
func (s *Scenario) Validate() error {
	c := checker{Report: strict.New(s.Name, ""), s: s}
	c.check()
	if c.OK() {
		return nil
	}
	return c.Faults()
}

// fill gives lists that were left out their defaults.
func (s *Scenario) fill() {
	if len(s.Variants) == 0 {
		s.Variants = []Variant{{Name: VariantName(evidence.Subak)}}
	}
	if len(s.Budget.Classes) == 0 {
		s.Budget.Classes = []Class{
			{"confirmed", config.Whole * 60 / 100}, {"uncleared", config.Whole * 40 / 100},
		}
	}
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Name == "" {
			f.Name = string(f.Kind)
		}
	}
}

// Lists reports whether the scenario has the variant.
func (s *Scenario) Lists(v evidence.Variant) bool {
	return slices.ContainsFunc(s.Variants, func(x Variant) bool { return x.Name == VariantName(v) })
}
