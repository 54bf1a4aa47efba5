package wire

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// reader is a cursor over bytes from outside. It reads exactly one type where
// one is due. The first fault sticks and every later read returns zero, so that
// callers check once, before they use anything. It never allocates.
type reader struct {
	b     []byte
	i     int
	why   Reason
	field string // where the fault is
}

func (r *reader) fail(why Reason, field string) {
	if r.why == ReasonNone {
		r.why, r.field = why, field
	}
}

// err returns the first fault as an error.
func (r *reader) err() error {
	if r.why == ReasonNone {
		return nil
	}
	return malformed(r.why, r.field)
}

// left returns how many bytes have not been read.
func (r *reader) left() int { return len(r.b) - r.i }

// take returns the next n bytes without copying them.
func (r *reader) take(n uint64, field string) []byte {
	if r.why != ReasonNone {
		return nil
	}
	if n > uint64(r.left()) {
		r.fail(ReasonTruncated, field)
		return nil
	}
	start := r.i
	r.i += int(n)
	return r.b[start:r.i:r.i]
}

func (r *reader) code(field string) byte {
	if b := r.take(1, field); len(b) == 1 {
		return b[0]
	}
	return 0
}

// number reads n bytes, big endian.
func (r *reader) number(n uint64, field string) uint64 {
	v := uint64(0)
	for _, c := range r.take(n, field) {
		v = v<<8 | uint64(c)
	}
	return v
}

// uint reads an unsigned integer in [0, limit].
func (r *reader) uint(limit uint64, field string) uint64 {
	c := r.code(field)
	return r.uintAfter(c, limit, field)
}

func (r *reader) uintAfter(c byte, limit uint64, field string) uint64 {
	v := uint64(0)
	switch {
	case c <= msgpcode.PosFixedNumHigh:
		v = uint64(c)
	case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
		v = r.number(1<<(c-msgpcode.Uint8), field)
	default:
		r.fail(ReasonType, field)
	}
	if v > limit {
		r.fail(ReasonRange, field)
	}
	if r.why != ReasonNone {
		return 0
	}
	return v
}

// array reads the header of an array of at most limit elements.
func (r *reader) array(limit int, field string) int {
	c := r.code(field)
	n := uint64(0)
	switch {
	case msgpcode.IsFixedArray(c):
		n = uint64(c & msgpcode.FixedArrayMask)
	case c == msgpcode.Array16:
		n = r.number(2, field)
	case c == msgpcode.Array32:
		n = r.number(4, field)
	default:
		r.fail(ReasonType, field)
	}
	if n > uint64(limit) {
		r.fail(ReasonLength, field)
	}
	if r.why != ReasonNone {
		return 0
	}
	return int(n)
}

// bin reads a byte string of at most limit bytes, without copying it.
func (r *reader) bin(limit int, field string) []byte {
	c := r.code(field)
	return r.binAfter(c, limit, field)
}

func isBin(c byte) bool { return c >= msgpcode.Bin8 && c <= msgpcode.Bin32 }

func (r *reader) binAfter(c byte, limit int, field string) []byte {
	if !isBin(c) {
		r.fail(ReasonType, field)
		return nil
	}
	n := r.number(1<<(c-msgpcode.Bin8), field)
	if n > uint64(limit) {
		r.fail(ReasonLength, field)
		return nil
	}
	return r.take(n, field)
}

// name reads a node name, without copying it.
func (r *reader) name(field string) []byte {
	c := r.code(field)
	n := uint64(0)
	switch {
	case msgpcode.IsFixedString(c):
		n = uint64(c & msgpcode.FixedStrMask)
	case c == msgpcode.Str8:
		n = r.number(1, field)
	case c == msgpcode.Str16 || c == msgpcode.Str32:
		r.fail(ReasonLength, field)
	default:
		r.fail(ReasonType, field)
	}
	if n > MaxName {
		r.fail(ReasonLength, field)
	}
	b := r.take(n, field)
	if len(b) == 0 || !utf8.Valid(b) {
		r.fail(ReasonText, field)
	}
	return b
}

// varint reads an unsigned varint in [0, limit] in its shortest form.
func (r *reader) varint(limit uint64, field string) uint64 {
	if r.why != ReasonNone {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.i:])
	switch {
	case n == 0:
		r.fail(ReasonTruncated, field)
	case n < 0 || v > limit || n > 1 && r.b[r.i+n-1] == 0:
		r.fail(ReasonRange, field)
	default:
		r.i += n
		return v
	}
	return 0
}

// skip passes over n values of any type. It keeps no stack: what is nested is
// added to the values to come. Each value takes a byte at least, so a false count
// ends with the bytes.
func (r *reader) skip(n int, field string) {
	for pending := uint64(max(n, 0)); pending > 0 && r.why == ReasonNone; pending-- {
		pending += r.skipOne(field)
	}
}

// skipOne passes over one code and its payload and returns how many values are
// nested in it.
func (r *reader) skipOne(field string) (nested uint64) {
	c := r.code(field)
	switch {
	case msgpcode.IsFixedNum(c), c == msgpcode.Nil, c == msgpcode.False, c == msgpcode.True:
	case msgpcode.IsFixedMap(c):
		return 2 * uint64(c&msgpcode.FixedMapMask)
	case msgpcode.IsFixedArray(c):
		return uint64(c & msgpcode.FixedArrayMask)
	case msgpcode.IsFixedString(c):
		r.take(uint64(c&msgpcode.FixedStrMask), field)
	case c >= msgpcode.Bin8 && c <= msgpcode.Bin32:
		r.take(r.number(1<<(c-msgpcode.Bin8), field), field)
	case c >= msgpcode.Ext8 && c <= msgpcode.Ext32:
		r.take(r.number(1<<(c-msgpcode.Ext8), field)+1, field)
	case c == msgpcode.Float:
		r.take(4, field)
	case c == msgpcode.Double:
		r.take(8, field)
	case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
		r.take(1<<(c-msgpcode.Uint8), field)
	case c >= msgpcode.Int8 && c <= msgpcode.Int64:
		r.take(1<<(c-msgpcode.Int8), field)
	case c >= msgpcode.FixExt1 && c <= msgpcode.FixExt16:
		r.take(1<<(c-msgpcode.FixExt1)+1, field)
	case c >= msgpcode.Str8 && c <= msgpcode.Str32:
		r.take(r.number(1<<(c-msgpcode.Str8), field), field)
	case c == msgpcode.Array16:
		return r.number(2, field)
	case c == msgpcode.Array32:
		return r.number(4, field)
	case c == msgpcode.Map16:
		return 2 * r.number(2, field)
	case c == msgpcode.Map32:
		return 2 * r.number(4, field)
	default:
		r.fail(ReasonType, field)
	}
	return 0
}

// end refuses bytes after the packet.
func (r *reader) end() {
	if r.left() > 0 {
		r.fail(ReasonTrailing, "packet")
	}
}
