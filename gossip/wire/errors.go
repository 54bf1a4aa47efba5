package wire

import (
	"errors"
	"fmt"

	"subak/allocator/ledger"
)

// Reason says why a packet was refused. There are few and they are fixed, so
// that a reason can be the label of a metric.
type Reason uint8

// The reasons.
const (
	ReasonNone Reason = iota
	ReasonTruncated
	ReasonTrailing      // bytes after the packet
	ReasonType          // not the type that is due there, nil included
	ReasonRange         // a number out of its range
	ReasonLength        // a count or length over its limit
	ReasonShort         // array with fewer fields than the kind has
	ReasonOrder         // duplicate or unsorted
	ReasonText          // name empty or not UTF-8
	ReasonFormat        // another major format
	ReasonMismatch      // parts, digest or reference that do not fit together
	ReasonDirectory     // no room to learn another name
	ReasonTooLarge      // larger than may be sent or read
	ReasonForeignRoot   // another cluster's
	ReasonUnknownEpoch  // ask for the epoch
	ReasonUnknownVector // ask for the vector
	ReasonLostBase      // ask for the row
	ReasonStale         // a delta that is no news
	ReasonOther         // an error that is not of this package
	reasonEnd
)

// String returns a stable word for logs and metric labels.
func (r Reason) String() string {
	words := [reasonEnd]string{
		"none", "truncated", "trailing", "type", "range", "length", "short", "order", "text", "format",
		"mismatch", "directory", "too_large", "foreign_root", "unknown_epoch", "unknown_vector", "lost_base", "stale", "other",
	}
	if r >= reasonEnd {
		return "other"
	}
	return words[r]
}

// ReasonOf returns the reason of an error of this package, wrapped or not, and
// ReasonNone for nil.
func ReasonOf(err error) Reason {
	if err == nil {
		return ReasonNone
	}
	var r interface{ Reason() Reason }
	if errors.As(err, &r) {
		return r.Reason()
	}
	return ReasonOther
}

// MalformedError is a packet that breaks the format, or a row or epoch given to
// an encoder that the format cannot carry.
type MalformedError struct {
	Why   Reason
	Field string // one of the fixed field names of the package comment
}

func (e *MalformedError) Error() string { return "wire: " + e.Field + ": " + e.Why.String() }

// Reason returns Why.
func (e *MalformedError) Reason() Reason { return e.Why }

// TooLargeError is a packet over MaxPacket (from an encoder, which returns the
// packet beside it if a stream can carry it) or over MaxLong.
type TooLargeError struct{ Size int } // bytes

func (e *TooLargeError) Error() string { return fmt.Sprintf("wire: packet of %d bytes", e.Size) }

// Reason returns ReasonTooLarge.
func (e *TooLargeError) Reason() Reason { return ReasonTooLarge }

// ForeignRootError is a packet of another cluster. Lessons O16.
type ForeignRootError struct{ Tag uint32 } // RootTag of that cluster

func (e *ForeignRootError) Error() string {
	return fmt.Sprintf("wire: packet of another lineage %08x", e.Tag)
}

// Reason returns ReasonForeignRoot.
func (e *ForeignRootError) Reason() Reason { return ReasonForeignRoot }

// UnknownEpochError is a row that cannot be read before the epoch is known. The
// receiver treats the row as lost and sends [Encoder.EpochWanted].
type UnknownEpochError struct{ ID ledger.EpochID }

func (e *UnknownEpochError) Error() string {
	return fmt.Sprintf("wire: row of unknown epoch %d/%016x", e.ID.Version, e.ID.Hash)
}

// Reason returns ReasonUnknownEpoch.
func (e *UnknownEpochError) Reason() Reason { return ReasonUnknownEpoch }

// UnknownVectorError is a row that cannot be read before the incarnation vector
// is known. The receiver treats the row as lost and sends
// [Encoder.VectorWanted] to the publisher or to whoever relayed the row.
type UnknownVectorError struct {
	Node   ledger.NodeID // the publisher; -1 if the directory does not know it
	Digest uint64
}

func (e *UnknownVectorError) Error() string {
	return fmt.Sprintf("wire: row of unknown incarnation vector %016x", e.Digest)
}

// Reason returns ReasonUnknownVector.
func (e *UnknownVectorError) Reason() Reason { return ReasonUnknownVector }

// LostBaseError is a delta or copy whose base was not merged here. The receiver
// treats the row as lost and sends [Encoder.RowWanted] to the publisher.
type LostBaseError struct {
	Node      ledger.NodeID // the publisher
	Inc       uint64
	Base, Seq uint64
	Have      uint64 // seq of the newest row of that life merged here, 0 if none
}

func (e *LostBaseError) Error() string {
	return fmt.Sprintf("wire: row %d since row %d, but %d is the newest here", e.Seq, e.Base, e.Have)
}

// Reason returns ReasonLostBase.
func (e *LostBaseError) Reason() Reason { return ReasonLostBase }

// StaleError is a row that is not newer than the one merged already. It is
// what becomes of duplicates, so nothing is wrong.
type StaleError struct{}

func (StaleError) Error() string { return "wire: row is not news" }

// Reason returns ReasonStale.
func (StaleError) Reason() Reason { return ReasonStale }

func malformed(why Reason, field string) error { return &MalformedError{Why: why, Field: field} }
