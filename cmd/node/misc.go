package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version string

// build says what this binary was built from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuild() (b build) {
	defer func() { b.Version += variant }()
	b = build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = first(b.Version, "unknown")
		return b
	}
	b.Version = first(b.Version, info.Main.Version, "unknown")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if asJSON {
				return printJSON(p.out, b)
			}
			page := &page{}
			revision := b.Revision
			if b.Modified {
				revision += " with local changes"
			}
			page.fact("subak", b.Version)
			page.fact("revision", revision)
			page.fact("go", b.Go)
			page.fact("platform", b.Platform)
			return page.writeTo(p.out)
		},
	}
	p.jsonFlag(cmd, &asJSON)
	return cmd
}

func (p *program) keygenCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make a key for gossip encryption, or a token",
		Long: `Print 32 random bytes as base64: a key for gossip.keys or gossip.key_file, or a
token for admin.token_file.`,
		Example: `  (umask 077; subak keygen > gossip.keys)`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			key := make([]byte, 32)
			rand.Read(key) // never fails: the program ends if the system has no randomness
			text := base64.StdEncoding.EncodeToString(key)
			if asJSON {
				return printJSON(p.out, map[string]string{"key": text})
			}
			_, err := fmt.Fprintln(p.out, text)
			return err
		},
	}
	p.jsonFlag(cmd, &asJSON)
	return cmd
}

func (p *program) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man [DIR]",
		Short: "Write manual pages for all commands into a directory",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := first(append(args, ".")...)
			header := &doc.GenManHeader{Section: "1", Source: "subak " + readBuild().Version, Manual: "Subak"}
			if err := doc.GenManTree(cmd.Root(), header, dir); err != nil {
				return &failure{exitBroken, fmt.Errorf("write manual pages: %w", err), "name a directory that exists and is writable"}
			}
			return nil
		},
	}
}
