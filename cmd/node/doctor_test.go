package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorSaysWhatIsAmissWithItsMend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "subak.yaml")
	text := strings.NewReplacer("ams.example:7946", "127.0.0.1:1", "fra.example:7946", "127.0.0.1:2",
		"listen: 0.0.0.0:7946", "listen: 127.0.0.71:0", "profile: wan", "profile: local").Replace(subak(t, nil, "config", "example").out)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"doctor", "-c", file, "--node", "ams", "--admin", "unix:/nonexistent/s", "--cluster-data-dir", t.TempDir()}
	got := subak(t, nil, args...)
	if got.code != exitBroken || got.err != "" {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	for _, want := range []string{"ok    config: node ams of 3", "FAIL  seed 127.0.0.1:1: ", "connection refused", "      mend: nothing listens there", "doctor: 2 FAIL"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("want %q in\n%s", want, got.out)
		}
	}
	var said examined
	asJSON := subak(t, nil, append(args, "--json")...)
	if err := json.Unmarshal([]byte(asJSON.out), &said); err != nil || said.OK || len(said.Checks) < 5 || asJSON.code != exitBroken {
		t.Errorf("got %+v, %v, code %d", said, err, asJSON.code)
	}
}

func TestDoctorNamesTheFaultsOfTheFile(t *testing.T) {
	got := subak(t, nil, "doctor", "-c", "/nonexistent")
	if got.code != exitBroken || !strings.Contains(got.out, "FAIL  config: /nonexistent:1: cannot be read") {
		t.Errorf("got %+v", got)
	}
	if got := subak(t, nil, "doctor"); got.code != exitUsage || !strings.Contains(got.err, "mend: name it by --config") {
		t.Errorf("got %+v", got)
	}
}
