//go:build !linux

package clock

func kernelCounts() bool { return false }
