package api

// Alarm is something that needs a person: it does not mend itself.
type Alarm struct {
	Kind AlarmKind `json:"kind"`
	// Peer is whom it is about, empty for this node.
	Peer string `json:"peer,omitempty"`
	// Words say what was seen, what this node does about it, and the mend.
	Words string `json:"words"`
}

// AlarmKind is a stable word.
type AlarmKind string

// The kinds of alarm.
const (
	AlarmTwin   AlarmKind = "twin"   // another process uses this node's name
	AlarmClock  AlarmKind = "clock"  // a peer's clock runs outside of what leases allow for
	AlarmDisk   AlarmKind = "disk"   // the durable state cannot be saved
	AlarmMemory AlarmKind = "memory" // the durable state was an old copy
)

// Clock bounds how a peer's lease clock runs against this node's, over the last
// minutes.
type Clock struct {
	LowPPM  int64  `json:"low_ppm"` // it gains at least this many microseconds in a second of this node's
	HighPPM int64  `json:"high_ppm"`
	Verdict string `json:"verdict"` // within, fast, slow
}
