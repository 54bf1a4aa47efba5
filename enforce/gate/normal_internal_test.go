package gate

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAPathHasOneNormalFormOrNone(t *testing.T) {
	for raw, want := range map[string]string{
		"/":                    "/",
		"/a/b":                 "/a/b",
		"/a/b/":                "/a/b/",
		"//a///b//":            "/a/b/",
		"/a/./b/../c":          "/a/c",
		"/a/..":                "/",
		"/a/.":                 "/a/",
		"/.well-known/x":       "/.well-known/x",
		"/...":                 "/...",
		"/%61dmin":             "/admin",
		"/a/%2e%2E/b":          "/b",
		"/a/%2e/b":             "/a/b",
		"/%7euser":             "/~user",
		"/caf%c3%a9":           "/caf%C3%A9",
		"/caf\xc3\xa9":         "/caf%C3%A9",
		"/a|b\"<>":             "/a%7Cb%22%3C%3E",
		"/100%25":              "/100%25",
		"/%252e%252e/x":        "/%252e%252e/x", // decoded once, as everywhere
		"/a%2fb":               "/a%2Fb",
		"/a;v=1/b":             "/a;v=1/b",
		"/a:b@c!$&'()*+,=":     "/a:b@c!$&'()*+,=",
		"/..":                  "",
		"/a/../../b":           "",
		"/%2e%2e/etc":          "",
		"/a/..%2fb":            "",
		"/a/%2e%2e%5cb":        "",
		"/a/..;/b":             "",
		"/a/.;x=1/b":           "",
		"/a\\b":                "",
		"/a%00":                "",
		"/a%0d%0aSet-Cookie:x": "",
		"/a\x01":               "",
		"/a%7f":                "",
		"/a#b":                 "",
		"/a%":                  "",
		"/a%4":                 "",
		"/a%zz":                "",
		"a":                    "",
		"*":                    "",
		"":                     "",
	} {
		var a address
		fault := a.setPath(raw)
		if want == "" && fault == "" {
			t.Errorf("%q: %q, want a fault", raw, a.path)
		}
		if want != "" && (fault != "" || a.path != want) {
			t.Errorf("%q: %q (%s), want %q", raw, a.path, fault, want)
		}
	}
}

func TestWhatServersDifferInIsReadInEveryWay(t *testing.T) {
	for raw, want := range map[string][]string{
		"/a/b":          {"/a/b"},
		"/a%2Fb":        {"/a%2Fb", "/a/b"},
		"/a%5cb":        {"/a%5Cb", "/a/b"},
		"/a;x/b;y":      {"/a;x/b;y", "/a/b"},
		"/a;x%2fb/c":    {"/a;x%2Fb/c", "/a;x/b/c", "/a/c", "/a/c"},
		"/%2F%2Fa":      {"/%2F%2Fa", "/a"},
		"/;/a":          {"/;/a", "/a"},
		"/caf%C3%A9%20": {"/café "},
	} {
		var a address
		if fault := a.setPath(raw); fault != "" {
			t.Errorf("%q: %s", raw, fault)
		}
		if got := append([]string{a.text}, a.also...); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

func TestNormalFormIsItsOwnNormalForm(t *testing.T) {
	piece := rapid.SampledFrom([]string{"/", ".", "..", "%2e", "%2F", "%5c", ";", "a", "B", "%61", "%C3", "\xff", "|", "%25", "~", "admin", " ", "\\"})
	rapid.Check(t, func(t *rapid.T) {
		raw := "/" + strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
		var a, again address
		if a.setPath(raw) != "" {
			return
		}
		if fault := again.setPath(a.path); fault != "" || again.path != a.path || again.text != a.text {
			t.Fatalf("%q: %q, then %q (%s)", raw, a.path, again.path, fault)
		}
		for _, text := range append(a.also, a.text) {
			if strings.Contains(text+"/", "/../") || strings.Contains(text+"/", "/./") || strings.Contains(text, "//") {
				t.Fatalf("%q: reading %q", raw, text)
			}
		}
		// What a plain server makes of it: decoded as a whole.
		u, err := url.ParseRequestURI(a.path)
		if err != nil {
			t.Fatalf("%q: %v", a.path, err)
		}
		if strings.Contains(u.Path+"/", "/../") {
			t.Fatalf("%q decodes to %q", a.path, u.Path)
		}
	})
}

func TestAHostHasOneNormalFormOrNone(t *testing.T) {
	for raw, want := range map[string][2]string{
		"":                     {"", ""},
		"example.com":          {"example.com", "example.com"},
		"EXAMPLE.com.:80":      {"example.com:80", "example.com"},
		"example.com:":         {"example.com", "example.com"},
		"a_b.example:08080":    {"a_b.example:8080", "a_b.example"},
		"10.0.0.1:1":           {"10.0.0.1:1", "10.0.0.1"},
		"[::1]":                {"[::1]", "[::1]"},
		"[2001:DB8::1]:443":    {"[2001:db8::1]:443", "[2001:db8::1]"},
		"a:b":                  {},
		"a:80:80":              {},
		"a:+80":                {},
		"a:99999":              {},
		"::1":                  {},
		"[::1":                 {},
		"[::1]x":               {},
		"[::1%25eth0]":         {},
		"[1.2.3.4]":            {},
		"a..b":                 {},
		".a":                   {},
		".":                    {},
		":80":                  {},
		"user@a":               {},
		"a/b":                  {},
		"a b":                  {},
		"%61":                  {},
		"caf\xc3\xa9":          {},
		"a,b":                  {},
		"example.com\x00.evil": {},
	} {
		host, bare, ok := normalHost(raw)
		if want == [2]string{} && raw != "" {
			if ok {
				t.Errorf("%q: %q, want none", raw, host)
			}
			continue
		}
		if !ok || host != want[0] || bare != want[1] {
			t.Errorf("%q: %q, %q, %v; want %q", raw, host, bare, ok, want)
		}
	}
}

func TestATargetIsReadFromEveryForm(t *testing.T) {
	for _, tc := range []struct{ target, path, host string }{
		{"/x?y=//..", "/x", "example.com"},
		{"http://Other.example:80/x//y?z", "/x/y", "other.example:80"},
		{"http://other.example", "/", "other.example"},
	} {
		r := httptest.NewRequest("GET", tc.target, nil)
		a, fault := addressOf(r)
		if fault != "" || a.path != tc.path || a.host != tc.host {
			t.Errorf("%q: %+v (%s)", tc.target, a, fault)
		}
	}
	for _, target := range []string{"ftp://a/b", "http://user@a/b", "/a?b#c", "mailto:x"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RequestURI = target
		r.URL, _ = url.ParseRequestURI(target)
		if a, fault := addressOf(r); fault == "" {
			t.Errorf("%q: %+v, want a fault", target, a)
		}
	}
}
