package chaos

import (
	"fmt"
	"strings"
)

// Mode is which of the protocol's options a run has.
type Mode uint8

// The modes.
const (
	// Plain is the product as it ships: some nodes with a disk, some without.
	Plain Mode = iota
	// NoRelease: releases never reach the lender (rule L7 only delays).
	NoRelease
	// NoDurable: no node has a disk.
	NoDurable
	// FastQuarantine: all nodes have a disk, and restarts are quick, so that the
	// quarantine is mostly ended by its shortcut (rule L8).
	FastQuarantine
	// MajorityProof: every restart needs a strict majority of witnesses.
	MajorityProof
	// ForcedRemoval: operators force nodes out often (rule E6).
	ForcedRemoval
	// MixedVersions: rows travel as packets, some of them with fields of a later
	// version.
	MixedVersions

	modeCount
)

// String returns the mode's name on the command line.
func (m Mode) String() string {
	switch m {
	case Plain:
		return "plain"
	case NoRelease:
		return "no-release"
	case NoDurable:
		return "no-durable"
	case FastQuarantine:
		return "fast-quarantine"
	case MajorityProof:
		return "majority-proof"
	case ForcedRemoval:
		return "forced-removal"
	case MixedVersions:
		return "mixed-versions"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Modes returns all modes.
func Modes() []Mode {
	all := make([]Mode, modeCount)
	for i := range all {
		all[i] = Mode(i)
	}
	return all
}

// ParseMode reads a mode's name.
func ParseMode(s string) (Mode, error) {
	var names []string
	for _, m := range Modes() {
		if m.String() == s {
			return m, nil
		}
		names = append(names, m.String())
	}
	return 0, fmt.Errorf("mode %q is none of %s", s, strings.Join(names, ", "))
}

// ModeOf is the mode of a seed in a campaign over all modes: they take turns.
func ModeOf(seed uint64) Mode { return Mode(seed % uint64(modeCount)) }
