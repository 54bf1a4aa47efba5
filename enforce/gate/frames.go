package gate

import (
	"encoding/binary"
	"io"
	"sync"
)

// farewell is the way to the client of a WebSocket, through which the client can
// be told that this server goes away. A close frame may only stand between two
// frames of the backend's, so those are followed; it is the last that the client
// gets, as the protocol has it (RFC 6455, 5.5.1), and the client's own close
// frame, its answer, then ends the backend's side.
type farewell struct {
	to io.Writer

	mu     sync.Mutex // guards all that follows, and the order of writes
	frames frames
	wanted bool
	said   bool
}

// goingAway is a close frame without a mask, of status 1001.
const goingAway = "\x88\x02\x03\xe9"

// Write implements io.Writer. After the farewell it swallows.
func (f *farewell) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for done := 0; done < len(p); {
		if f.said {
			return len(p), nil
		}
		n := len(p) - done
		if f.wanted {
			n = f.frames.rest(p[done:])
		} else {
			f.frames.follow(p[done:])
		}
		if _, err := f.to.Write(p[done : done+n]); err != nil {
			return done, err
		}
		done += n
		f.speak()
	}
	return len(p), nil
}

// say tells the client as soon as a frame ends.
func (f *farewell) say() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted = true
	f.speak()
}

func (f *farewell) speak() {
	if f.wanted && !f.said && f.frames.between() {
		f.said = true
		_, _ = io.WriteString(f.to, goingAway) // the client may be gone
	}
}

// frames follows the frames of one direction of a WebSocket.
type frames struct {
	head [14]byte
	have int    // bytes of the head that are there
	left uint64 // bytes to go of the payload
}

// between reports whether the last byte seen was the last of a frame.
func (f *frames) between() bool { return f.have == 0 && f.left == 0 }

// follow takes all of p.
func (f *frames) follow(p []byte) {
	for len(p) > 0 {
		p = p[f.rest(p):]
	}
}

// rest takes the begin of p, up to the end of a head or a frame at most, and
// returns how much it took: one byte at least.
func (f *frames) rest(p []byte) int {
	if f.left > 0 {
		n := min(f.left, uint64(len(p)))
		f.left -= n
		return int(n)
	}
	for i, c := range p {
		f.head[f.have] = c
		f.have++
		if f.have < f.headLen() {
			continue
		}
		f.left, f.have = f.payload(), 0
		return i + 1
	}
	return len(p)
}

// headLen is the length of the head, as far as what is there tells.
func (f *frames) headLen() int {
	if f.have < 2 {
		return 2
	}
	n := 2
	switch f.head[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if f.head[1]&0x80 != 0 {
		n += 4
	}
	return n
}

func (f *frames) payload() uint64 {
	switch n := f.head[1] & 0x7f; n {
	case 126:
		return uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		return binary.BigEndian.Uint64(f.head[2:])
	default:
		return uint64(n)
	}
}
