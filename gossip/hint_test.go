package gossip

import (
	"strings"
	"testing"
)

func TestAFailedContactComesWithAHint(t *testing.T) {
	for text, want := range map[string]string{
		"failed to join 192.0.2.1:7946: EOF":                                                        "another cluster",
		"failed to join 192.0.2.1:7946: read: connection reset by peer":                             "another cluster",
		"failed to join 192.0.2.1:7946: no installed keys could decrypt the message":                "another gossip key",
		"failed to join 192.0.2.1:7946: encryption is configured but remote state is not encrypted": "another gossip key",
		`resolve "a.example": lookup a.example: no such host`:                                       "gossip.seeds",
		"dial tcp 192.0.2.1:7946: connect: connection refused":                                      "gossip.listen",
		"dial tcp 192.0.2.1:7946: i/o timeout":                                                      "firewalls",
		"something new":                                                                             "for ever",
	} {
		if got := joinHint(text); !strings.Contains(got, want) {
			t.Errorf("hint for %q is %q, want something about %q", text, got, want)
		}
	}
}
