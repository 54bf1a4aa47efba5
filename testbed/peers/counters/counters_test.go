package counters

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source is a directory with the file that turns counters off.
func source(t *testing.T, text string) string {
	repo := t.TempDir()
	path := filepath.Join(repo, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return repo
}

func TestTheOverlayTurnsCountersOffAndNothingElse(t *testing.T) {
	repo := source(t, "package enforce\n\n// Why.\nconst counting = true\n")
	name, err := without(repo, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &overlay); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(overlay.Replace[filepath.Join(repo, file)])
	if err != nil || string(other) != "package enforce\n\n// Why.\nconst counting = false\n" {
		t.Errorf("%v: %q, %v", overlay, other, err)
	}
}

func TestAFileThatTurnsNothingOffIsAnError(t *testing.T) {
	if _, err := without(source(t, "package enforce\n"), t.TempDir()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v, want an error that names the file", err)
	}
	if _, err := without(t.TempDir(), t.TempDir()); err == nil {
		t.Error("no error without the file")
	}
}
