package config

import (
	"fmt"

	"github.com/goccy/go-yaml"
)

// redacted stands for a secret in everything that is printed.
const redacted = "(redacted)"

// YAML writes the effective configuration: files, environment and flags put
// together, defaults filled in, secrets redacted. Without secrets in it, it
// loads again to the same configuration.
func (c *Config) YAML() ([]byte, error) {
	shown := *c
	shown.Gossip.Keys = make([]string, len(c.Gossip.Keys))
	for i := range shown.Gossip.Keys {
		shown.Gossip.Keys[i] = redacted
	}
	out, err := yaml.MarshalWithOptions(&shown, yaml.UseSingleQuote(false), yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	return out, nil
}

// JSON is [Config.YAML] as JSON.
func (c *Config) JSON() ([]byte, error) {
	text, err := c.YAML()
	if err != nil {
		return nil, err
	}
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	return out, nil
}
