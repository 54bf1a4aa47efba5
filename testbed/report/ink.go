package report

import (
	"fmt"
	"image/color"
	"strings"
)

// ink is what a stroke or a fill stands for. A drawing is made with one made-up
// colour for each ink; in the SVG these become CSS variables, so that the page's
// scheme decides what is seen.
type ink uint8

const (
	inkText   ink = iota // words that matter, and the line a figure is about
	inkMuted             // ticks and what is secondary
	inkGrid              // hairlines
	inkPanel             // the ground, for halos and gaps
	inkBand              // the time of a fault; translucent, so that faults in faults are seen
	inkEdge              // its bar above the plot
	inkLimit             // the budget
	inkBound             // what the origin may see at most
	inkBroken            // above that
	inkOffered
	inkShare
	inkClass // and up: one line ink for each class
)

// Classes beyond the palette reuse its colours: nobody reads seven.
const inkClasses = 6

// inkArea and up are the fills that go with inkClass.
const (
	inkArea = inkClass + inkClasses
	inkEnd  = inkArea + inkClasses
)

func classInk(k int) ink  { return inkClass + ink(k%inkClasses) }
func classArea(k int) ink { return inkArea + ink(k%inkClasses) }

// color is the made-up colour of an ink; hex is how vgsvg writes it.
func (i ink) color() color.Color { return color.RGBA{R: 0x10, G: 0x20 + byte(i), B: 0x30, A: 0xff} }

func (i ink) hex() string { return fmt.Sprintf("#10%02X30", 0x20+byte(i)) }

// hue is one variable in the light and in the dark scheme.
type hue struct{ name, light, dark string }

// palette is in the order of the inks. The class colours are apart in hue and in
// lightness for protan, deutan and tritan eyes.
func palette() []hue {
	return []hue{
		{"ink", "#16201e", "#e8edea"},
		{"muted", "#57625f", "#a3afab"},
		{"grid", "#e3e6e0", "#2b3532"},
		{"panel", "#ffffff", "#181f1d"},
		{"band", "rgb(165 138 78/.18)", "rgb(190 160 92/.17)"},
		{"edge", "#a58a4e", "#b99b58"},
		{"limit", "#16201e", "#e8edea"},
		{"bound", "#b3202c", "#ff8d8a"},
		{"broken", "#d6001c", "#ff5c5c"},
		{"offered", "#8b9693", "#7d8a86"},
		{"share", "#16201e", "#f2f5f3"},
		{"c1", "#1763b8", "#5aa2f2"}, {"c2", "#d97706", "#ffab52"}, {"c3", "#0b8f78", "#3fc7a8"},
		{"c4", "#8a4fb0", "#c79df0"}, {"c5", "#8a7a00", "#d8c64a"}, {"c6", "#7a4a2b", "#cf9d7c"},
		{"a1", "#a9cbf0", "#1f4d80"}, {"a2", "#f9d3a0", "#7d4e16"}, {"a3", "#a5dccf", "#165c4e"},
		{"a4", "#dcc6ec", "#573a70"}, {"a5", "#e5dc99", "#5f5718"}, {"a6", "#dcc3b3", "#5c412f"},
	}
}

// schemes is the CSS of the variables in both schemes.
func schemes() string {
	var light, dark strings.Builder
	for _, h := range palette() {
		fmt.Fprintf(&light, "--%s:%s;", h.name, h.light)
		fmt.Fprintf(&dark, "--%s:%s;", h.name, h.dark)
	}
	return ":root{" + light.String() + "}\n@media (prefers-color-scheme:dark){:root{" + dark.String() + "}}\n"
}
