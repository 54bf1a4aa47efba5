package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"subak/internal/api"
)

// page collects what a command prints for people and writes it at once.
type page struct{ text strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// fact writes a label and lines of text beside it; nothing without lines.
func (p *page) fact(label string, lines ...string) {
	for _, text := range lines {
		if text != "" {
			p.line("%-9s %s", label, text)
			label = ""
		}
	}
}

// table writes aligned columns, numbers to the right: a header that starts with
// > is that of a number.
func (p *page) table(indent string, header []string, rows [][]string) {
	width := make([]int, len(header))
	cells := append([][]string{make([]string, len(header))}, rows...)
	for i, h := range header {
		cells[0][i] = strings.TrimPrefix(h, ">")
	}
	for _, row := range cells {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	if strings.Join(cells[0], "") == "" {
		cells = cells[1:]
	}
	for _, row := range cells {
		line := indent
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-len([]rune(cell)))
			if strings.HasPrefix(header[i], ">") {
				line += pad + cell + "  "
			} else {
				line += cell + pad + "  "
			}
		}
		p.line("%s", strings.TrimRight(line, " "))
	}
}

// writeTo writes the page without control characters: names and reasons come
// from another process, which must not play with the terminal.
func (p *page) writeTo(w io.Writer) error {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, p.text.String())
	_, err := io.WriteString(w, clean)
	return err
}

func rate(x float64, unit string) string { return api.RateWords(x, unit) }

func number(x float64) string { return api.NumberWords(x) }

// percent writes part of whole.
func percent(part, whole float64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*part/whole)
}

// span writes a time in seconds in the two largest units.
func span(seconds float64) string {
	if math.IsNaN(seconds) || seconds < 0 || seconds > 1e9 {
		return "?"
	}
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// millis writes a time in milliseconds; a negative one is unknown.
func millis(ms float64) string {
	switch {
	case math.IsNaN(ms) || ms < 0:
		return "-"
	case ms >= 10_000:
		return span(ms / 1000)
	case ms >= 10:
		return fmt.Sprintf("%.0fms", ms)
	}
	return fmt.Sprintf("%.1fms", ms)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// list joins a few words, and says how many more there are.
func list(words []string) string {
	const most = 8
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}
