package config

import "subak/internal/strict"

// Fault is one mistake in the configuration.
type Fault = strict.Fault

// Faults is every mistake of one configuration, by place.
type Faults = strict.Faults

// newReport begins a report about the file main.
func newReport(main string) *strict.Report {
	return strict.New(main, "start from the output of subak config example")
}
