package epoch

// Difference is one thing that differs between two documents.
type Difference struct {
	// Subject is what differs: "budget origin", "node ams".
	Subject string `json:"subject"`
	// What changes, as a word: "added", "removed", "limit", "burst",
	// "reservation high", "weight", "base ams" ...
	What string `json:"what"`
	// Before and After, with units, for people; empty where there is none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// String is the difference in one line.
func (d Difference) String() string {
	switch {
	case d.Before == "" && d.After == "":
		return d.Subject + ": " + d.What
	case d.Before == "":
		return d.Subject + ": " + d.What + " " + d.After
	case d.After == "":
		return d.Subject + ": " + d.What + " (was " + d.Before + ")"
	}
	return d.Subject + ": " + d.What + " " + d.Before + " -> " + d.After
}
