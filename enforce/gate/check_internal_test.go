package gate

import (
	"net/url"
	"testing"

	"pgregory.net/rapid"
)

func TestAPlainPathIsThatOfTheParser(t *testing.T) {
	same := func(t interface {
		Helper()
		Errorf(string, ...any)
	}, uri string) (plain bool) {
		t.Helper()
		got, plain := plainPath(uri)
		if !plain {
			return false
		}
		if u, err := url.ParseRequestURI(uri); err != nil || u.Path != got {
			t.Errorf("%q: plain path %q, the parser says %+v, %v", uri, got, u, err)
		}
		return true
	}
	for _, uri := range []string{"/", "/api/x", "/a?b", "/a?%zz", "/a?b?c", "//host/x", "/a:b", "/a#b", "/é", "/a b", "/a/../b", "/?", "/;a=1,2"} {
		if !same(t, uri) {
			t.Errorf("%q is not plain", uri)
		}
	}
	for _, uri := range []string{"", "*", "api", "http://x/", "/%41", "/%zz", "/a\x00", "/a\x7f", "/a?\n"} {
		if same(t, uri) {
			t.Errorf("%q is plain", uri)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		same(t, "/"+rapid.StringOf(rapid.SampledFrom([]rune("ab/.?#%:@ \t\n;&=é\x7f2"))).Draw(t, "rest"))
	})
}
