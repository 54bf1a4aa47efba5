package load

import (
	"math/rand/v2"
	"time"
)

// Arrivals is how the arrivals of a stream are spaced.
type Arrivals uint8

const (
	// Poisson arrivals are independent of one another, as those of many
	// clients are: exponential gaps. The default.
	Poisson Arrivals = iota
	// Uniform arrivals keep one even gap, offset once by a random fraction of
	// it so that streams of equal rate do not march in step.
	Uniform
)

// arrival is one request before it is sent.
type arrival struct {
	at     time.Duration // since the start of the run
	phase  int
	client uint32
}

// schedule yields the arrivals of one stream in order of time. The same seed
// gives the same arrivals, whatever the network does: that is what makes the
// load an open loop. It walks a piecewise constant rate by spending "hazard":
// a gap costs an amount drawn once, and time passes at rate units of it per
// second, so a change of rate in the middle of a gap needs no special case.
type schedule struct {
	rng     *rand.Rand
	kind    Arrivals
	ends    []time.Duration // end of each phase
	every   time.Duration   // length of each stretch; 0: the stretches are the phases
	rates   []float64       // requests/s in each stretch
	clients uint32
	phase   int     // of the last arrival
	stretch int     // of the time reached
	at      float64 // seconds since the start
	first   bool
}

func newSchedule(seed uint64, stream int, s Stream, ends []time.Duration) *schedule {
	return &schedule{
		rng:     rand.New(rand.NewPCG(seed, uint64(stream)+1)),
		kind:    s.Arrivals,
		ends:    ends,
		every:   s.Every,
		rates:   s.Rates,
		clients: s.Clients,
		first:   true,
	}
}

// next returns the next arrival; ok is false after the last phase.
func (s *schedule) next() (a arrival, ok bool) {
	hazard := s.gap()
	for s.stretch < len(s.rates) {
		until := s.end(s.stretch)
		end, rate := until.Seconds(), s.rates[s.stretch]
		if room := rate * (end - s.at); room >= hazard {
			s.at += hazard / rate
			at := min(time.Duration(s.at*float64(time.Second)), until-1)
			for at >= s.ends[s.phase] {
				s.phase++
			}
			return arrival{at: at, phase: s.phase, client: s.client()}, true
		} else if room > 0 {
			hazard -= room
		}
		s.at = end
		s.stretch++
	}
	return arrival{}, false
}

// end is when a stretch of constant rate ends, no later than the last phase.
func (s *schedule) end(stretch int) time.Duration {
	if s.every == 0 {
		return s.ends[stretch]
	}
	return min(time.Duration(stretch+1)*s.every, s.ends[len(s.ends)-1])
}

func (s *schedule) gap() float64 {
	if s.kind == Poisson {
		return s.rng.ExpFloat64()
	}
	if s.first {
		s.first = false
		return 1 - s.rng.Float64()
	}
	return 1
}

func (s *schedule) client() uint32 {
	if s.clients == 0 {
		return 0
	}
	return s.rng.Uint32N(s.clients)
}
