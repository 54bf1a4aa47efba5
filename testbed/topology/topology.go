// Package topology says who is where and how far apart: the places of the
// emulated network, of the simulator and of the contention scenarios.
//
// # Model
//
// A [Place] is one point of presence. A [Topology] is a list of places and the
// time that a packet takes from each to each. It comes from coordinates, by
// [Delay], or from a table of measured round trips, by [FromCSV].
//
// Units: degrees north and east, kilometres, delays as time.Duration one way
// unless a name says RTT. Weights have no unit: a place's base is the budget times
// its weight over the sum of weights.
//
// # Invariants
//
// A topology has 2 to [MaxPlaces] places with distinct names and weights of at
// least 1; OneWay is square, zero on the diagonal and from 1 µs to half of
// [MaxRTT] off it. The built-in places have the same delays on every CPU: results
// are rounded to a microsecond, far more than CPUs differ in a sine.
//
// All functions are pure but [Find], which may read a file, and safe for
// concurrent use; nobody may change a Topology while others read it.
package topology

import (
	"math"
	"time"
)

// Regions of the built-in places. A CSV may name others.
const (
	Europe       = "europe"
	NorthAmerica = "north-america"
	SouthAmerica = "south-america"
	Asia         = "asia"
	Oceania      = "oceania"
)

// MaxPlaces and MaxRTT bound what a CSV may hold.
const (
	MaxPlaces = 64
	MaxRTT    = 10 * time.Second
)

// Place is where a node is.
type Place struct {
	Name        string
	North, East float64       // degrees
	Weight      int64         // at least 1
	Offset      time.Duration // of local standard time from UTC, -12 h to +14 h
	Region      string        // part of the world; empty for unknown
}

// Topology is a set of places and how far apart they are.
type Topology struct {
	Name   string
	Places []Place
	// OneWay is the delay from place i to place j as OneWay[i][j].
	OneWay [][]time.Duration
}

// Kilometres is the great-circle distance (haversine, mean radius of the Earth),
// 0 to about 20,015.
func Kilometres(a, b Place) float64 {
	const radius, degree = 6371, math.Pi / 180
	half := func(x float64) float64 { s := math.Sin(x / 2); return s * s }
	h := half((a.North-b.North)*degree) + math.Cos(a.North*degree)*math.Cos(b.North*degree)*half((a.East-b.East)*degree)
	return 2 * radius * math.Asin(math.Sqrt(min(1, h)))
}

// Delay is the time one way between two places: light in fibre does 200 km per
// ms, and cables are half as long again as the great circle. The ms on top is
// for the last mile.
func Delay(a, b Place) time.Duration {
	us := math.Round(Kilometres(a, b) * 1.5 / 200 * 1000)
	return time.Duration(us)*time.Microsecond + time.Millisecond
}

// between makes a topology of places whose delays are those of [Delay].
func between(name string, places []Place) Topology {
	t := Topology{Name: name, Places: places, OneWay: square(len(places))}
	for i, a := range places {
		for j, b := range places {
			if i != j {
				t.OneWay[i][j] = Delay(a, b)
			}
		}
	}
	return t
}

func square(n int) [][]time.Duration {
	m := make([][]time.Duration, n)
	for i := range m {
		m[i] = make([]time.Duration, n)
	}
	return m
}

// MaxRTT is the round trip of the two places that are farthest apart.
func (t Topology) MaxRTT() (rtt time.Duration) {
	for i := range t.OneWay {
		for j := range t.OneWay[i] {
			rtt = max(rtt, t.OneWay[i][j]+t.OneWay[j][i])
		}
	}
	return rtt
}

// Index is the position of the place of a name, -1 for none.
func (t Topology) Index(name string) int {
	for i := range t.Places {
		if t.Places[i].Name == name {
			return i
		}
	}
	return -1
}

// Names are those of the places, in order.
func (t Topology) Names() []string {
	names := make([]string, len(t.Places))
	for i := range names {
		names[i] = t.Places[i].Name
	}
	return names
}

// Weights are those of the places, in order.
func (t Topology) Weights() []int64 {
	weights := make([]int64, len(t.Places))
	for i := range weights {
		weights[i] = t.Places[i].Weight
	}
	return weights
}
