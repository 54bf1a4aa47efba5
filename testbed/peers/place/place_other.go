//go:build !linux

package doors

import (
	"errors"
	"time"
)

// FindPlace binds nothing here.
func FindPlace() Place { return Place{} }

// Pin fails here.
func Pin(string, string, []string) error {
	return errors.New("processes are bound to cores on Linux only")
}

// cpuTime is not known here, so claims on it are not measured.
func cpuTime(int) (time.Duration, error) { return 0, nil }
