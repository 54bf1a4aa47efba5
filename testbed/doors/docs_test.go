package doors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUsersAreShownTheFilesThatAreTested(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/doors.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]bool{}
	for rest := string(text); ; {
		_, after, ok := strings.Cut(rest, "\n```")
		if !ok {
			break
		}
		_, after, _ = strings.Cut(after, "\n") // the language
		body, after, ok := strings.Cut(after, "\n```\n")
		if !ok {
			t.Fatal("a block of docs/doors.md does not end")
		}
		blocks[body+"\n"] = true
		rest = "\n" + after
	}
	files, err := filepath.Glob("*")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, name := range files {
		if filepath.Ext(name) == ".go" {
			continue
		}
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !blocks[string(file)] {
			t.Errorf("docs/doors.md does not show %s as it is", name)
			continue
		}
		shown++
	}
	if shown != len(blocks) {
		t.Errorf("docs/doors.md has %d blocks, of which %d are files that are tested", len(blocks), shown)
	}
}
