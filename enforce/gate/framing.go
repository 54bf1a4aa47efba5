package gate

import "bytes"

// framing follows the messages of one HTTP/1 connection as their bytes come in,
// and stops at the first that is framed in a way that two servers may read
// differently: what is the end of one request to this server must not be the
// begin of another to the proxy in front of it (request smuggling). net/http
// reads some of these leniently, as RFC 9112 lets it. Refused are
//
//   - a line that does not end in CRLF, or has a CR elsewhere;
//   - a field continued on the next line;
//   - more than one Content-Length, even the same, or one that is no plain number;
//   - a Transfer-Encoding other than a single "chunked", or in HTTP/1.0;
//   - Content-Length together with Transfer-Encoding, or either in a trailer;
//   - a chunk size that is not hexadecimal digits alone, but for an extension of
//     reasonable length, or a chunk that does not end where its size says.
//
// It decides nothing else; what passes is parsed by net/http. Used by one reader
// at a time.
type framing struct {
	state   framingState
	left    uint64 // bytes to go of a body or chunk
	line    []byte // the begin of a line whose end is not here yet
	second  bool   // not the connection's first request
	http10  bool
	length  int64 // of the message's Content-Length, -1 without
	chunked bool
	fault   string
}

type framingState uint8

const (
	atRequest framingState = iota // the zero value: a request line comes next
	atField
	atBody
	atChunkSize
	atChunk
	atChunkEnd
	atTrailer
	opaque // HTTP/2: not ours to read
)

const (
	lineMax      = headerBytesMax + 4096 // net/http's own limit is below
	chunkLineMax = 256                   // size and extensions
)

// check reads what came in and returns how much of it may be handed on: all, or
// what was before the line with the fault.
func (f *framing) check(p []byte) int {
	for i := 0; i < len(p); {
		switch f.state {
		case opaque:
			return len(p)
		case atBody, atChunk:
			n := min(f.left, uint64(len(p)-i))
			i += int(n)
			if f.left -= n; f.left == 0 {
				f.bodyDone()
			}
			continue
		}
		end := bytes.IndexByte(p[i:], '\n')
		if end < 0 {
			if f.line = append(f.line, p[i:]...); len(f.line) > lineMax {
				f.fault = "a line is too long"
				return i
			}
			return len(p)
		}
		line := p[i : i+end+1]
		if len(f.line) > 0 {
			f.line = append(f.line, line...)
			line = f.line
		}
		if f.fault = f.read(line); f.fault != "" {
			return i
		}
		f.line = f.line[:0]
		i += end + 1
	}
	return len(p)
}

// between reports whether all that came in are whole requests.
func (f *framing) between() bool {
	return f.state == atRequest && f.second && len(f.line) == 0 && f.fault == ""
}

func (f *framing) bodyDone() {
	if f.state == atChunk {
		f.state = atChunkEnd
		return
	}
	f.state, f.second = atRequest, true
}

// read takes one line, with its end.
func (f *framing) read(line []byte) (fault string) {
	if len(line) < 2 || bytes.IndexByte(line, '\r') != len(line)-2 {
		return "a line does not end in CRLF, or has a CR in it"
	}
	text := line[:len(line)-2]
	switch f.state {
	case atRequest:
		return f.request(text)
	case atField:
		return f.field(text)
	case atChunkSize:
		return f.chunkSize(text)
	case atChunkEnd:
		if len(text) != 0 {
			return "a chunk is longer than its size"
		}
		f.state = atChunkSize
	case atTrailer:
		if len(text) == 0 {
			f.state, f.second = atRequest, true
			return ""
		}
		if isField(text, "content-length") || isField(text, "transfer-encoding") || folded(text) {
			return "a trailer frames the message"
		}
	}
	return ""
}

func (f *framing) request(text []byte) (fault string) {
	if !f.second && string(text) == "PRI * HTTP/2.0" {
		f.state = opaque
		return ""
	}
	if len(text) == 0 {
		return "an empty line where a request should be"
	}
	f.state, f.length, f.chunked = atField, -1, false
	f.http10 = bytes.HasSuffix(text, []byte(" HTTP/1.0"))
	return ""
}

func (f *framing) field(text []byte) (fault string) {
	switch {
	case len(text) == 0:
		return f.headDone()
	case folded(text):
		return "a field is folded over two lines"
	case isField(text, "content-length"):
		n, ok := decimal(trim(text[len("content-length:"):]))
		if f.length >= 0 || !ok {
			return "Content-Length is given twice, or is no number"
		}
		f.length = n
	case isField(text, "transfer-encoding"):
		v := trim(text[len("transfer-encoding:"):])
		if f.chunked || f.http10 || !bytes.EqualFold(v, []byte("chunked")) {
			return "Transfer-Encoding is something else than chunked"
		}
		f.chunked = true
	}
	return ""
}

func (f *framing) headDone() (fault string) {
	switch {
	case f.chunked && f.length >= 0:
		return "Content-Length and Transfer-Encoding contradict each other"
	case f.chunked:
		f.state = atChunkSize
	case f.length > 0:
		f.state, f.left = atBody, uint64(f.length)
	default:
		f.state, f.second = atRequest, true
	}
	return ""
}

func (f *framing) chunkSize(text []byte) (fault string) {
	size, extension, _ := bytes.Cut(text, []byte(";"))
	if len(text) > chunkLineMax || len(size) == 0 || len(size) > 15 {
		return "a chunk's size is missing or too long"
	}
	for _, c := range extension {
		if c < ' ' && c != '\t' || c == 0x7f {
			return "a chunk's extension has a control character"
		}
	}
	f.left = 0
	for _, c := range size {
		if unhex(c) > 15 {
			return "a chunk's size is no hexadecimal number"
		}
		f.left = f.left<<4 | uint64(unhex(c))
	}
	f.state = atChunk
	if f.left == 0 {
		f.state = atTrailer
	}
	return ""
}

func folded(text []byte) bool { return text[0] == ' ' || text[0] == '\t' }

// isField reports whether a line is the field of that name; a blank before the
// colon is left to net/http, which refuses it.
func isField(text []byte, name string) bool {
	// The first byte says no to nearly every field that there is.
	return text[0]|0x20 == name[0] && len(text) > len(name) && text[len(name)] == ':' && bytes.EqualFold(text[:len(name)], []byte(name))
}

func trim(v []byte) []byte { return bytes.Trim(v, " \t") }

func decimal(v []byte) (n int64, ok bool) {
	if len(v) == 0 || len(v) > 18 {
		return 0, false
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}
