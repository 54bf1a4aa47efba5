package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// clean makes foreign text fit to be shown on one line: what is not printable
// (control characters, escapes of terminals, marks that turn the direction of
// writing) becomes a space, and more than n runes are cut.
func clean(s string, n int) string {
	var b strings.Builder
	count := 0
	for _, r := range s {
		if count == n {
			b.WriteRune('…')
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
		count++
	}
	return strings.TrimSpace(b.String())
}

// count writes a whole number with commas.
func count(v float64) string {
	if math.IsNaN(v) || math.Abs(v) > 1e15 {
		return "?"
	}
	return humanize.Comma(int64(math.Round(v)))
}

// percent writes part of whole; "–" where there is no whole.
func percent(part, whole float64) string {
	if whole <= 0 {
		return "–"
	}
	return decimal(100*part/whole) + " %"
}

// decimal writes one decimal, but none from 100 up.
func decimal(v float64) string {
	if math.Abs(v) >= 99.95 {
		return count(v)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// seconds writes a duration as a person would.
func seconds(d time.Duration) string {
	switch {
	case d == 0:
		return "0 s"
	case d.Abs() < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d.Abs() < time.Second:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + " ms"
	}
	return trimmed(d.Seconds(), 2) + " s"
}

// trimmed writes v with at most n decimals and no zeros at the end.
func trimmed(v float64, n int) string {
	s := strconv.FormatFloat(v, 'f', n, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// size writes bytes with a unit of thousands.
func size(v float64) string {
	switch {
	case v >= 1e6:
		return trimmed(v/1e6, 1) + " MB"
	case v >= 1e3:
		return trimmed(v/1e3, 1) + " kB"
	}
	return count(v) + " B"
}

// names joins the names of nodes, at most 6 of them.
func names(all []string, some []int) string {
	var out []string
	for _, i := range some {
		if i >= 0 && i < len(all) {
			out = append(out, clean(all[i], 24))
		}
	}
	if len(out) > 6 {
		out = append(out[:5], fmt.Sprintf("%d more", len(out)-5))
	}
	return strings.Join(out, ", ")
}

// slug makes an element's id: letters, digits and hyphens of the name, and the
// place in the page, which makes it the only one.
func slug(name string, place int) string {
	s := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToLower(r)
		}
		return '-'
	}, clean(name, 40))
	return fmt.Sprintf("s%d-%s", place, strings.Trim(s, "-"))
}
