package topology

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Cities22 is the topology of the evaluation: 22 cities and their weights. Each is
// named by its airport and placed in the middle of the city.
func Cities22() Topology { return between("cities22", cities()) }

// Five is the topology of the demo: five of the 22 cities, on four continents.
func Five() Topology {
	all := Topology{Places: cities()}
	var five []Place
	for _, name := range []string{"ams", "fra", "iad", "gru", "sin"} {
		five = append(five, all.Places[all.Index(name)])
	}
	return between("five", five)
}

// Scattered22 is the simulators' topology: 22 cities, some of them in Africa and on
// the Gulf, of equal weights, without regions or clocks. What is claimed of the
// core's reaction was measured over these; over the evaluation's, the p95 of a
// demand step is 16 ms longer.
func Scattered22() Topology {
	var places []Place
	for _, p := range []struct {
		name        string
		north, east float64
	}{
		{"amsterdam", 52.37, 4.90}, {"ashburn", 39.04, -77.49}, {"miami", 25.76, -80.19}, {"toronto", 43.65, -79.38},
		{"chicago", 41.88, -87.63}, {"dallas", 32.78, -96.80}, {"dubai", 25.20, 55.27}, {"frankfurt", 50.11, 8.68},
		{"hongkong", 22.32, 114.17}, {"johannesburg", -26.20, 28.05}, {"lagos", 6.52, 3.38}, {"santiago", -33.45, -70.67},
		{"london", 51.51, -0.13}, {"losangeles", 34.05, -118.24}, {"madrid", 40.42, -3.70}, {"mumbai", 19.08, 72.88},
		{"saopaulo", -23.55, -46.63}, {"seattle", 47.61, -122.33}, {"singapore", 1.35, 103.82}, {"stockholm", 59.33, 18.07},
		{"sydney", -33.87, 151.21}, {"tokyo", 35.68, 139.69},
	} {
		places = append(places, Place{Name: p.name, North: p.north, East: p.east, Weight: 1})
	}
	return between("scattered22", places)
}

func cities() []Place {
	hours := func(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }
	return []Place{
		{"ams", 52.37, 4.90, 55, hours(1), Europe},
		{"bom", 19.08, 72.88, 40, hours(5.5), Asia},
		{"cdg", 48.86, 2.35, 45, hours(1), Europe},
		{"dfw", 32.78, -96.80, 50, hours(-6), NorthAmerica},
		{"fra", 50.11, 8.68, 80, hours(1), Europe},
		{"gru", -23.55, -46.63, 45, hours(-3), SouthAmerica},
		{"hkg", 22.32, 114.17, 25, hours(8), Asia},
		{"iad", 39.04, -77.49, 95, hours(-5), NorthAmerica},
		{"icn", 37.57, 126.98, 25, hours(9), Asia},
		{"jfk", 40.71, -74.01, 70, hours(-5), NorthAmerica},
		{"lax", 34.05, -118.24, 65, hours(-8), NorthAmerica},
		{"lhr", 51.51, -0.13, 75, hours(0), Europe},
		{"mad", 40.42, -3.70, 25, hours(1), Europe},
		{"mia", 25.76, -80.19, 40, hours(-5), NorthAmerica},
		{"nrt", 35.68, 139.69, 50, hours(9), Asia},
		{"ord", 41.88, -87.63, 55, hours(-6), NorthAmerica},
		{"sea", 47.61, -122.33, 35, hours(-8), NorthAmerica},
		{"sin", 1.35, 103.82, 45, hours(8), Asia},
		{"sjc", 37.34, -121.89, 60, hours(-8), NorthAmerica},
		{"arn", 59.33, 18.07, 20, hours(1), Europe},
		{"syd", -33.87, 151.21, 30, hours(10), Oceania},
		{"yyz", 43.65, -79.38, 30, hours(-5), NorthAmerica},
	}
}

// Find returns a topology by name: five, cities22, or the path of a .csv file of
// round trips, which is named by the file without its ending. The error of a
// file names every fault in it.
func Find(name string) (Topology, error) {
	switch {
	case name == "five":
		return Five(), nil
	case name == "cities22":
		return Cities22(), nil
	case !strings.HasSuffix(name, ".csv"):
		return Topology{}, fmt.Errorf("topology %q: unknown; mend: five, cities22, or the path of a .csv file of round trips in ms", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return Topology{}, fmt.Errorf("topology: %w; mend: a readable .csv file of round trips in ms", err)
	}
	defer f.Close()
	t, err := FromCSV(strings.TrimSuffix(filepath.Base(name), ".csv"), f)
	if err != nil {
		return Topology{}, fmt.Errorf("topology %s: %w", name, err)
	}
	return t, nil
}
