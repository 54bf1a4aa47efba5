package chaos

// Clock is the lease clock of a simulated machine: it runs at a rate near that
// of true time, through every pause, and never jumps. Readings are ns.
type Clock struct {
	offset, origin int64 // reading offset at true time origin
	ppm            int64 // rate - 1
}

// NewClock returns a clock that reads reading at true time t.
func NewClock(t, reading int64) Clock { return Clock{offset: reading, origin: t} }

// At returns the reading at true time t, which is not before the last change of
// rate.
func (c *Clock) At(t int64) int64 {
	d := t - c.origin
	return c.offset + d + d*c.ppm/1_000_000
}

// SetRate changes the rate to 1 + ppm/1,000,000 from true time t on.
func (c *Clock) SetRate(t, ppm int64) {
	*c = Clock{offset: c.At(t), origin: t, ppm: ppm}
}

// When returns the first true time from t on at which the clock reads at least
// reading.
func (c *Clock) When(t, reading int64) int64 {
	left := reading - c.At(t)
	if left <= 0 {
		return t
	}
	t += left * 1_000_000 / (1_000_000 + c.ppm)
	for t > c.origin && c.At(t-1) >= reading {
		t--
	}
	for c.At(t) < reading {
		t++
	}
	return t
}

// Rho returns the greatest deviation of a clock's rate, in ppm, for which an
// allowance of eps (ppm) is enough: 1+eps >= (1+rho)/(1-rho). Source:
// conservation.md A2.
func Rho(eps int64) int64 { return eps * 1_000_000 / (2_000_000 + eps) }
