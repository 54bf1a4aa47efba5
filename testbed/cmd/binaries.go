//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"subak/testbed/evidence"
	"subak/testbed/run"
	"subak/testbed/scenario"
)

// builder makes the executables that scenarios need, below the module's bin.
type builder struct {
	root string // of the module
	bin  string
}

func newBuilder() (*builder, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return nil, errors.New("start the testbed inside of the repository: it builds the nodes from there")
	}
	return &builder{root: root, bin: filepath.Join(root, "bin")}, nil
}

// names are where the executables are, made or to be made.
func (b *builder) names(all []scenario.Scenario) run.Binaries {
	out := run.Binaries{
		Subak: filepath.Join(b.bin, "subak"), Baseline: filepath.Join(b.bin, "subak-baseline"),
		Older: map[string]string{}, Version: b.version(),
	}
	for _, s := range all {
		if o := s.Cluster.Older; o != nil {
			out.Older[o.Commit] = filepath.Join(b.bin, "subak-"+o.Commit)
		}
	}
	return out
}

// version is that of the working tree.
func (b *builder) version() string {
	if v := os.Getenv(versionVariable); v != "" {
		return v
	}
	out, err := b.command(context.Background(), b.root, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "dev"
	}
	return strings.TrimSpace(string(out))
}

// build makes what the scenarios need.
func (b *builder) build(ctx context.Context, c choice, all []scenario.Scenario) error {
	bins := b.names(all)
	if err := b.compile(ctx, b.root, bins.Subak, bins.Version); err != nil {
		return err
	}
	for i := range all {
		for _, v := range c.variants(&all[i]) {
			if v != evidence.Subak {
				if err := b.compile(ctx, b.root, bins.Baseline, bins.Version, "-tags", "baseline"); err != nil {
					return err
				}
			}
		}
	}
	if len(contentions(all)) > 0 {
		if said, err := b.command(ctx, b.root, "go", "build", "-trimpath", "-o", b.simulator(), "./chaos/contention").CombinedOutput(); err != nil {
			return fmt.Errorf("build the simulator: %w\n%s", err, bytes.TrimSpace(said))
		}
	}
	for commit, path := range bins.Older {
		if err := b.older(ctx, commit, path); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) compile(ctx context.Context, dir, path, version string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w -X main.version=" + version, "-o", path}, flags...)
	cmd := b.command(ctx, dir, "go", append(args, "./cmd/node")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", filepath.Base(path), err, bytes.TrimSpace(said))
	}
	return nil
}

// older builds another commit from its archive, once.
func (b *builder) older(ctx context.Context, commit, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "subak-older-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is temporary either way
	archive := filepath.Join(dir, "tree.tar")
	if said, err := b.command(ctx, b.root, "git", "archive", "-o", archive, commit).CombinedOutput(); err != nil {
		return fmt.Errorf("the older version %s is not in this repository's history: %s; mend: git fetch --unshallow, or leave out the scenarios with cluster.older", commit, bytes.TrimSpace(said))
	}
	if said, err := b.command(ctx, dir, "tar", "-xf", archive).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack %s: %w\n%s", commit, err, said)
	}
	return b.compile(ctx, dir, path, commit)
}

func (b *builder) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	return cmd
}
