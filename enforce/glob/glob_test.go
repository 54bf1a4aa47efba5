package glob_test

import (
	"testing"

	"pgregory.net/rapid"

	"subak/enforce/glob"
)

// slowly is what a pattern means, by trying every length for every star.
func slowly(pattern, s string) bool {
	switch {
	case pattern == "":
		return s == ""
	case pattern[0] == '*':
		for i := range len(s) + 1 {
			if slowly(pattern[1:], s[i:]) {
				return true
			}
		}
		return false
	}
	return s != "" && s[0] == pattern[0] && slowly(pattern[1:], s[1:])
}

func TestAPatternMatchesWhatTryingEveryLengthFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab/*]{1,8}`).Draw(t, "pattern")
		s := rapid.StringMatching(`[ab/]{0,10}`).Draw(t, "string")
		g := glob.New(pattern)
		if got, want := g.Matches(s), slowly(pattern, s); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, s, got, want)
		}
	})
}

func TestPatternsMatchWholeStrings(t *testing.T) {
	for _, tc := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "x", true}, {"*", "", true}, {"**", "", true}, {"/a", "/a", true}, {"/a", "/ab", false},
		{"/a*", "/ab", true}, {"/a*", "/b", false}, {"*a", "ba", true}, {"a*a", "a", false}, {"a*a", "aa", true},
		{"/*/x/*/y", "/1/x/2/y", true}, {"/*/x/*/y", "/1/y/2/x", false}, {"a**b", "ab", true},
		{"/a/*", "/a/b/c", true}, {"A", "a", false}, {"a\nb*", "a\nb\n", true}, {"\xff*", "\xff\xfe", true},
	} {
		g := glob.New(tc.pattern)
		if got := g.Matches(tc.s); got != tc.want {
			t.Errorf("%q matches %q: %v, want %v", tc.pattern, tc.s, got, tc.want)
		}
	}
}
