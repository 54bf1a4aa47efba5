package envoy

import (
	"errors"
	"math"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the fields that are read or written, from
// envoy/service/ratelimit/v3/rls.proto,
// envoy/extensions/common/ratelimit/v3/ratelimit.proto,
// envoy/config/core/v3/base.proto and google/protobuf/{wrappers,duration,struct}.proto.
const (
	requestDomain, requestDescriptors, requestHits = 1, 2, 3

	descriptorEntries, descriptorLimit, descriptorHits, descriptorNegative = 1, 2, 3, 4

	entryKey, entryValue = 1, 2

	wrapperValue = 1

	responseCode, responseStatuses, responseHeaders, responseBody, responseMetadata = 1, 2, 3, 5, 6

	statusCode, statusLimit, statusRemaining, statusReset = 1, 2, 3, 4

	limitRequests, limitUnit, limitName, limitMultiplier = 1, 2, 3, 4

	durationSeconds, durationNanos = 1, 2

	headerKey, headerValue = 1, 2

	structFields, mapKey, mapValue, valueString = 1, 1, 2, 3
)

// maxDescriptors is how many descriptors of one call are read. A call with more
// is refused: they are made by the Envoy's configuration, a handful at most.
const maxDescriptors = 32

// descriptor is one descriptor of a call: pairs[from:to].
type descriptor struct {
	from, to int
	hits     uint64 // its own, where set
	set      bool
	negative bool // hits would be given back
	limit    bool // it brings a limit of its own
}

// request is a decoded RateLimitRequest. Its strings live in raw.
type request struct {
	raw         []byte
	domain      string
	hits        uint64
	count       int // descriptors in the message; those past maxDescriptors are not read
	descriptors []descriptor
	pairs       []Pair
}

var errWire = errors.New("not a RateLimitRequest")

// decode reads the message in raw. Unlike proto.Unmarshal it takes strings that
// are no UTF-8: clients put such bytes into their headers, and a call that fails
// is a request that passes where Envoy fails open (lesson O26).
func (q *request) decode() error {
	q.domain, q.hits, q.count = "", 0, 0
	q.descriptors, q.pairs = q.descriptors[:0], q.pairs[:0]
	return fields(q.raw, func(f field) bool {
		switch {
		case f.num == requestDomain && f.typ == protowire.BytesType:
			q.domain = view(f.bytes)
		case f.num == requestHits && f.typ == protowire.VarintType:
			q.hits = uint64(uint32(f.varint))
		case f.num == requestDescriptors && f.typ == protowire.BytesType:
			q.count++
			if q.count <= maxDescriptors {
				return q.decodeDescriptor(f.bytes) == nil
			}
		}
		return true
	})
}

func (q *request) decodeDescriptor(b []byte) error {
	d := descriptor{from: len(q.pairs)}
	err := fields(b, func(f field) bool {
		switch {
		case f.num == descriptorNegative && f.typ == protowire.VarintType:
			d.negative = f.varint != 0
		case f.typ != protowire.BytesType:
		case f.num == descriptorEntries:
			q.pairs = append(q.pairs, Pair{})
			return q.pairs[len(q.pairs)-1].decode(f.bytes) == nil
		case f.num == descriptorLimit:
			d.limit = true
		case f.num == descriptorHits:
			d.set = true
			return fields(f.bytes, func(f field) bool {
				if f.num == wrapperValue && f.typ == protowire.VarintType {
					d.hits = f.varint
				}
				return true
			}) == nil
		}
		return true
	})
	d.to = len(q.pairs)
	q.descriptors = append(q.descriptors, d)
	return err
}

func (p *Pair) decode(b []byte) error {
	return fields(b, func(f field) bool {
		if f.typ == protowire.BytesType {
			switch f.num {
			case entryKey:
				p.Key = view(f.bytes)
			case entryValue:
				p.Value = view(f.bytes)
			}
		}
		return true
	})
}

// view is a string that shares its bytes with a message: it is not to be kept
// beyond the call.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// field is one field of a message; of varint and bytes the one that typ says.
type field struct {
	num    protowire.Number
	typ    protowire.Type
	varint uint64
	bytes  []byte
}

// fields calls visit for each field of a message, in order, until it says false.
func fields(b []byte, visit func(field) bool) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		f := field{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 || !visit(f) {
			return errWire
		}
		b = b[n:]
	}
	return nil
}

// out is a message that is being written.
type out []byte

func (o *out) varint(num protowire.Number, v uint64) {
	*o = protowire.AppendVarint(protowire.AppendTag(*o, num, protowire.VarintType), v)
}

func (o *out) string(num protowire.Number, s string) {
	*o = protowire.AppendString(protowire.AppendTag(*o, num, protowire.BytesType), s)
}

func (o *out) bytes(num protowire.Number, b []byte) {
	*o = protowire.AppendBytes(protowire.AppendTag(*o, num, protowire.BytesType), b)
}

// begin opens a message inside the message; end closes it with its length, for
// which one byte was kept: few are longer.
func (o *out) begin(num protowire.Number) (at int) {
	*o = append(protowire.AppendTag(*o, num, protowire.BytesType), 0)
	return len(*o)
}

func (o *out) end(at int) {
	n := len(*o) - at
	if n < 0x80 {
		(*o)[at-1] = byte(n)
		return
	}
	more := protowire.SizeVarint(uint64(n)) - 1
	*o = append(*o, make([]byte, more)...)
	copy((*o)[at+more:], (*o)[at:at+n])
	protowire.AppendVarint((*o)[:at-1], uint64(n))
}

func clamp32(n int64) uint64 { return uint64(min(max(n, 0), math.MaxUint32)) }
