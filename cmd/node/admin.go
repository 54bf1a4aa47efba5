package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"subak/internal/api"
	"subak/internal/config"
)

const defaultAdmin = "127.0.0.1:7947"

// asker is a command that asks a running node.
type asker struct {
	*program
	address, tokenFile string
	timeout            time.Duration
	json               bool
}

// newAsker adds the flags of such commands.
func (p *program) newAsker(cmd *cobra.Command) *asker {
	a := &asker{program: p}
	flags := cmd.Flags()
	flags.StringVar(&a.address, "admin", "", fmt.Sprintf("the node's admin address, HOST:PORT or unix:/PATH (env %s; default %s)", config.EnvAdmin, defaultAdmin))
	flags.StringVar(&a.tokenFile, "token-file", "", fmt.Sprintf("file with the node's admin token (env %s)", config.EnvTokenFile))
	flags.DurationVar(&a.timeout, "timeout", 5*time.Second, "how long to wait for an answer")
	p.jsonFlag(cmd, &a.json)
	return a
}

// jsonFlag adds --json, which every printing command has.
func (p *program) jsonFlag(cmd *cobra.Command, on *bool) {
	cmd.Flags().BoolVar(on, "json", false, "print JSON instead of text")
}

// client returns a client of the node that flags and environment name.
func (a *asker) client() (*api.Client, error) {
	address := first(a.address, a.getenv(config.EnvAdmin), defaultAdmin)
	var token string
	if file := first(a.tokenFile, a.getenv(config.EnvTokenFile)); file != "" {
		var err error
		if token, err = config.ReadToken(file); err != nil {
			return nil, err
		}
	}
	c, err := api.NewClient(api.ClientConfig{Address: address, Token: token, Timeout: a.timeout})
	if err != nil {
		return nil, &failure{exitUsage, err, "write --admin 127.0.0.1:7947 or --admin unix:/run/subak.sock"}
	}
	return c, nil
}

// ask runs one question with a client.
func (a *asker) ask(ctx context.Context, question func(context.Context, *api.Client) error) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	return question(ctx, c)
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// printJSON writes one value, indented, for people and programs alike.
func printJSON(w io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}
