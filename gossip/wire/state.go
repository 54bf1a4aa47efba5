package wire

import (
	"encoding/binary"
	"iter"
)

// A push/pull state is packets one after another, each behind its length as a
// varint. It has no count and no header: it ends where the bytes end.

// AppendState appends one packet to a state and returns the longer state. It
// refuses, and returns dst as it was, if the packet is empty or over MaxLong, or
// the state would grow over MaxState.
func AppendState(dst, packet []byte) ([]byte, error) {
	if len(packet) == 0 {
		return dst, malformed(ReasonTruncated, "state")
	}
	if len(packet) > MaxLong || len(dst)+binary.MaxVarintLen32+len(packet) > MaxState {
		return dst, &TooLargeError{Size: len(packet)}
	}
	return append(binary.AppendUvarint(dst, uint64(len(packet))), packet...), nil
}

// Packets walks over the packets of a state without copying them. After the
// first fault it yields nil and the error and ends; the packets before stand.
func Packets(state []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if len(state) > MaxState {
			yield(nil, &TooLargeError{Size: len(state)})
			return
		}
		r := reader{b: state}
		for r.left() > 0 {
			packet := r.take(r.varint(MaxLong, "state"), "state")
			if r.why == ReasonNone && len(packet) == 0 {
				r.fail(ReasonTruncated, "state")
			}
			if err := r.err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(packet, nil) {
				return
			}
		}
	}
}
