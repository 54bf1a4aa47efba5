package gate

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFramingPassesWhatEverybodyReadsAlike(t *testing.T) {
	for name, text := range map[string]string{
		"a GET":                   "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"two in a row":            "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
		"a body of line ends":     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\n\n\r\n\nGET / HTTP/1.1\r\n\r\n",
		"a body and then another": "POST / HTTP/1.1\r\ncontent-length:3 \r\n\r\nabcGET / HTTP/1.1\r\n\r\n",
		"chunks":                  "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nab\n\n\n\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"HTTP/2":                  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\n\n \n",
		"HTTP/1.0":                "GET / HTTP/1.0\r\n\r\n",
	} {
		var f framing
		if n := f.check([]byte(text)); n != len(text) || f.fault != "" {
			t.Errorf("%s: %d of %d, %q", name, n, len(text), f.fault)
		}
	}
}

// faults are requests that two servers may frame differently; each begins with
// what may still be handed on.
var faults = map[string][2]string{
	"bare LF after the request line": {"", "GET / HTTP/1.1\nHost: a\r\n\r\n"},
	"bare LF after a field":          {"GET / HTTP/1.1\r\n", "Host: a\n\r\n"},
	"bare LF as the end of the head": {"GET / HTTP/1.1\r\nHost: a\r\n", "\n"},
	"bare CR in a field":             {"GET / HTTP/1.1\r\n", "Host: a\rX: y\r\n\r\n"},
	"CR CR LF":                       {"GET / HTTP/1.1\r\n", "Host: a\r\r\n\r\n"},
	"a folded field":                 {"GET / HTTP/1.1\r\nHost: a\r\n", " b\r\n\r\n"},
	"a folded first field":           {"GET / HTTP/1.1\r\n", "\tX: b\r\n\r\n"},
	"an empty line first":            {"", "\r\nGET / HTTP/1.1\r\n\r\n"},
	"CL and TE":                      {"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n", "\r\n0\r\n\r\n"},
	"TE and CL":                      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n", "\r\n0\r\n\r\n"},
	"CL twice":                       {"POST / HTTP/1.1\r\nContent-Length: 4\r\n", "Content-Length: 5\r\n\r\nabcde"},
	"CL twice the same":              {"POST / HTTP/1.1\r\nContent-Length: 4\r\n", "content-length: 4\r\n\r\nabcd"},
	"CL as a list":                   {"POST / HTTP/1.1\r\n", "Content-Length: 4, 4\r\n\r\nabcd"},
	"CL with a sign":                 {"POST / HTTP/1.1\r\n", "Content-Length: +4\r\n\r\nabcd"},
	"CL in hex":                      {"POST / HTTP/1.1\r\n", "Content-Length: 0x4\r\n\r\nabcd"},
	"CL without a value":             {"POST / HTTP/1.1\r\n", "Content-Length:\r\n\r\n"},
	"CL beyond any":                  {"POST / HTTP/1.1\r\n", "Content-Length: 99999999999999999999\r\n\r\n"},
	"TE twice":                       {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\n\r\n"},
	"TE of another coding":           {"POST / HTTP/1.1\r\n", "Transfer-Encoding: gzip, chunked\r\n\r\n"},
	"TE identity":                    {"POST / HTTP/1.1\r\n", "Transfer-Encoding: identity\r\n\r\n"},
	"TE with a vertical tab":         {"POST / HTTP/1.1\r\n", "Transfer-Encoding: \vchunked\r\n\r\n"},
	"TE in HTTP/1.0":                 {"POST / HTTP/1.0\r\n", "Transfer-Encoding: chunked\r\n\r\n"},
	"bare LF after a chunk size":     {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "5\nabcde\r\n0\r\n\r\n"},
	"a chunk size with a blank":      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "5 \r\nabcde\r\n0\r\n\r\n"},
	"a chunk size in 0x":             {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "0x5\r\nabcde\r\n0\r\n\r\n"},
	"a negative chunk size":          {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "-1\r\n\r\n"},
	"a chunk size beyond any":        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "1000000000000000\r\n"},
	"bare LF in a chunk extension":   {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "5;a\nabcde\r\n0\r\n\r\n"},
	"a long chunk extension":         {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "5;" + strings.Repeat("x", 300) + "\r\nabcde\r\n"},
	"a chunk longer than its size":   {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde", "f\r\n0\r\n\r\n"},
	"bare LF after a chunk":          {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde", "\n0\r\n\r\n"},
	"CL in a trailer":                {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "Content-Length: 5\r\n\r\n"},
	"bare LF in a trailer":           {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\n\r\n"},
	"HTTP/2 in the second request":   {"GET / HTTP/1.1\r\n\r\nPRI * HTTP/2.0\r\n\r\n", "SM\n"},
}

func TestFramingStopsAtWhatCanBeReadTwoWays(t *testing.T) {
	for name, parts := range faults {
		var f framing
		if n := f.check([]byte(parts[0] + parts[1])); n != len(parts[0]) || f.fault == "" {
			t.Errorf("%s: handed on %d, want %d; fault %q", name, n, len(parts[0]), f.fault)
		}
	}
}

// handed is what a connection hands on when its bytes come in pieces.
func handed(f *framing, pieces [][]byte) (out []byte) {
	for _, p := range pieces {
		n := f.check(p)
		if out = append(out, p[:n]...); f.fault != "" {
			break
		}
	}
	return out
}

func TestFramingDoesNotDependOnHowTheBytesComeIn(t *testing.T) {
	var texts []string
	for _, parts := range faults {
		texts = append(texts, parts[0]+parts[1])
	}
	texts = append(texts, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a\r\nab\n\n\n\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.SampledFrom(texts).Draw(t, "text"))
		var whole, split framing
		want := handed(&whole, [][]byte{text})
		var pieces [][]byte
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got := handed(&split, pieces)
		// The begin of the bad line may have gone through before its end came in.
		if split.fault != whole.fault || !bytes.HasPrefix(got, want) || whole.fault == "" && len(got) != len(want) {
			t.Fatalf("in %d pieces: %q (%s), whole: %q (%s)", len(pieces), got, split.fault, want, whole.fault)
		}
		if bytes.IndexByte(got[len(want):], '\n') >= 0 {
			t.Fatalf("the bad line got through: %q", got)
		}
	})
}

// FuzzFraming wants net/http to find the same requests in what passes as the
// strict reading does: the same number, and the same bytes in their bodies.
func FuzzFraming(f *testing.F) {
	for _, parts := range faults {
		f.Add([]byte(parts[0] + parts[1]))
	}
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var fr framing
		good := fr.check(data)
		if good < len(data) && fr.fault == "" {
			t.Fatal("stopped without a fault")
		}
		if fr.state == opaque {
			return
		}
		r := bufio.NewReader(bytes.NewReader(data[:good]))
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if te := req.TransferEncoding; len(te) > 0 && req.Header.Get("Content-Length") != "" {
				t.Fatalf("both framings in %q", data)
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return
			}
			if req.ContentLength >= 0 && int64(len(body)) != req.ContentLength {
				t.Fatalf("%d bytes of %d", len(body), req.ContentLength)
			}
		}
	})
}
