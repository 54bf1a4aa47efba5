package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// builder makes simulators, each in a directory of its own below dir.
type builder struct {
	root string // of the module
	dir  string // temporary
}

// newBuilder builds below dir; empty means a temporary directory.
func newBuilder(dir string) (*builder, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir, err = os.MkdirTemp("", "mutants")
	} else {
		dir, err = filepath.Abs(dir)
	}
	return &builder{root, dir}, err
}

// simulator builds the simulator with m's patches, or as it is for nil, and
// returns the path of the binary.
func (b *builder) simulator(ctx context.Context, m *Mutant) (string, error) {
	name := "product"
	if m != nil {
		name = fileName(m.Name)
	}
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "sim")
	args := []string{"build", "-o", bin, "-ldflags=-s -w"}
	if m != nil {
		overlay, err := b.overlay(m, dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./chaos/sim")...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build of %s: %w\n%s", name, err, out)
	}
	return bin, nil
}

// overlay writes the patched files and the list of what they replace.
func (b *builder) overlay(m *Mutant, dir string) (string, error) {
	texts, err := m.apply(b.root)
	if err != nil {
		return "", err
	}
	list := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range texts {
		patched := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(patched, []byte(text), 0o644); err != nil {
			return "", err
		}
		list.Replace[filepath.Join(b.root, filepath.FromSlash(file))] = patched
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, raw, 0o644)
}

// fileName keeps letters and digits of a mutant's name.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
}

// moduleRoot finds the directory of go.mod, from the working directory upwards.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("no module around the working directory")
	}
	return filepath.Dir(mod), nil
}
