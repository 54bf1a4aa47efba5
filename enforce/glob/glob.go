// Package glob matches strings against the patterns of rules: of paths, hosts and
// fields at the proxy, and of descriptors at Envoy's door.
//
// # Model
//
// A pattern is literal but for *, which stands for any run of bytes, the empty one
// and one with slashes too. The whole string must match. There is no escape, and
// case counts: who wants it not to lowers both sides. The empty pattern is "*".
//
// # Invariants
//
// Matching allocates nothing, goes through the string once for each literal part,
// and never steps back: a hostile string costs no more than a long one.
//
// # Concurrency
//
// A Pattern is immutable.
package glob

import "strings"

// Pattern is a compiled pattern. The zero value is none: use [New].
type Pattern struct {
	all   bool     // matches everything
	parts []string // between the stars; one part means no star
}

// New compiles a pattern; every string is one.
func New(p string) Pattern {
	if p == "" || p == "*" {
		return Pattern{all: true}
	}
	return Pattern{parts: strings.Split(p, "*")}
}

// Matches says whether the whole of s matches.
func (g *Pattern) Matches(s string) bool {
	if g.all {
		return true
	}
	first, last := g.parts[0], g.parts[len(g.parts)-1]
	if len(g.parts) == 1 {
		return s == first
	}
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, p := range g.parts[1 : len(g.parts)-1] {
		i := strings.Index(s, p) // the leftmost fit leaves most to the rest
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return true
}
