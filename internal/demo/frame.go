package demo

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// scene is what the live view shows at one moment.
type scene struct {
	limit  float64
	title  string // what is going on
	phase  int    // from 1
	phases int
	left   time.Duration // of the phase
	total  time.Duration // left of the whole run
	nodes  []nodeScene
	shares float64   // sum of enforced shares, requests/s
	origin []float64 // arrivals/s, oldest first, in half-second steps
}

type nodeScene struct {
	name, state             string  // state is empty when all is well
	demand, share, admitted float64 // requests/s
}

// frame draws the scene, width characters wide.
func frame(s scene, width int) []string {
	width = max(width, 60)
	lines := []string{
		fmt.Sprintf("phase %d/%d  %s  (%s left, %s to the end)", s.phase, s.phases, s.title, seconds(s.left), seconds(s.total)),
		"",
	}
	spark := width - 50
	now := 0.0
	if len(s.origin) > 0 {
		now = s.origin[len(s.origin)-1]
	}
	lines = append(lines,
		fmt.Sprintf("origin %9s of %s/s  %s", perSecond(now), comma(int(s.limit)), sparkline(s.origin, s.limit, spark)),
		fmt.Sprintf("shares %9s of %s/s  %s", perSecond(s.shares), comma(int(s.limit)), "the nodes' enforced rates added up"),
		"",
		fmt.Sprintf("%-6s%*s%12s%12s%12s", "node", width-44, "", "demand", "share", "admitted"))
	most := s.limit
	for _, n := range s.nodes {
		most = max(most, n.demand)
	}
	for _, n := range s.nodes {
		lines = append(lines, nodeLine(n, most, width))
	}
	lines = append(lines, "", "█ admitted  ▒ share not used  · demand beyond the share")
	return lines
}

func nodeLine(n nodeScene, most float64, width int) string {
	room := width - 46
	if n.state != "" {
		return fmt.Sprintf("%-6s%-*s%12s%12s%12s", n.name, room+2, n.state, "-", "-", "-")
	}
	return fmt.Sprintf("%-6s%s  %12s%12s%12s", n.name, bar(n, most, room), perSecond(n.demand), perSecond(n.share), perSecond(n.admitted))
}

// bar shows admitted inside share inside demand, against most, in room cells.
func bar(n nodeScene, most float64, room int) string {
	cells := func(v float64) int { return min(room, int(math.Round(v/most*float64(room)))) }
	admitted, share, demand := cells(n.admitted), cells(n.share), cells(n.demand)
	var b strings.Builder
	for i := range room {
		switch {
		case i < admitted:
			b.WriteRune('█')
		case i < share:
			b.WriteRune('▒')
		case i < demand:
			b.WriteRune('·')
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// sparkline draws the last room values; the full block stands for the limit and
// '!' for more than the limit and a tenth.
func sparkline(values []float64, limit float64, room int) string {
	steps := []rune("▁▂▃▄▅▆▇█")
	values = values[max(0, len(values)-room):]
	var b strings.Builder
	for _, v := range values {
		switch i := int(v / limit * float64(len(steps))); {
		case v > 1.1*limit:
			b.WriteByte('!')
		default:
			b.WriteRune(steps[max(0, min(i, len(steps)-1))])
		}
	}
	return b.String()
}

func perSecond(v float64) string { return comma(int(v+0.5)) + "/s" }

func seconds(d time.Duration) string {
	return fmt.Sprintf("%d s", int((max(d, 0)+999*time.Millisecond)/time.Second))
}
