//go:build !linux

package place

import (
	"errors"
	"time"
)

// Find binds nothing here.
func Find() Place { return Place{} }

// Pin fails here.
func Pin(string, string, []string) error {
	return errors.New("processes are bound to cores on Linux only")
}

// Favour does nothing here.
func Favour() (restore func()) { return func() {} }

// CPUTime is not known here, so claims on it are not measured.
func CPUTime(int) (time.Duration, error) { return 0, nil }
