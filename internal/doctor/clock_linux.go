package doctor

import (
	"time"

	"golang.org/x/sys/unix"
)

// checkClock looks at what leases hang on: that the clock of the machine runs, and
// at what rate the kernel was told to run it. What time it shows does not matter.
func (x *examination) checkClock() {
	const name = "clock"
	var boot, mono unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		x.fail(name, "use Linux 2.6.39 or later, and allow clock_gettime in the sandbox", "CLOCK_BOOTTIME cannot be read: %v", err)
		return
	}
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		x.fail(name, "allow clock_gettime in the sandbox", "CLOCK_MONOTONIC cannot be read: %v", err)
		return
	}
	suspended := ""
	if d := time.Duration(boot.Nano() - mono.Nano()); d > time.Second {
		suspended = "; the machine was suspended for " + d.Round(time.Second).String() + " since it started"
	}
	eps := float64(x.cfg.Protocol.Eps)
	var kernel unix.Timex
	if _, err := unix.Adjtimex(&kernel); err != nil {
		x.ok(name, "CLOCK_BOOTTIME runs; its rate cannot be read here%s", suspended)
		return
	}
	ppm := ratePPM(int64(kernel.Tick), int64(kernel.Freq)) //nolint:unconvert // 32 bits wide on 386
	if ppm > eps || ppm < -eps {
		x.fail(name, "see what disciplines the clock (ntpd, chronyd): no clock needs that much", "the kernel was told to run the clock %.0f ppm off its own rate, and protocol.eps is %v", ppm, x.cfg.Protocol.Eps)
		return
	}
	x.ok(name, "CLOCK_BOOTTIME runs, %+.0f ppm by the kernel, of %v allowed%s", ppm, x.cfg.Protocol.Eps, suspended)
}

// ratePPM is by how much the kernel corrects the clock, in parts per million:
// tick is in microseconds per 10 ms, freq in 2^-16 ppm.
func ratePPM(tick, freq int64) float64 {
	return float64(tick-10_000)*100 + float64(freq)/65536
}
