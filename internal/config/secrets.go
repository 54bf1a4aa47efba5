package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"subak/enforce/tlsfiles"
	"subak/internal/strict"
)

// Secrets are what the configuration names but must never print.
type Secrets struct {
	Keys  [][]byte // gossip keys of 32 bytes, the first one encrypts; none = unencrypted
	Token string   // of the admin interface; empty = none asked
}

const (
	maxSecretBytes = 64 << 10
	minTokenBytes  = 16
	maxKeys        = 64
)

// Secrets reads the gossip keys and the admin token, from the configuration and
// from the files it names. Loading does not, so that a configuration can be
// checked on a machine that holds no secrets. The error is a [Faults].
func (c *Config) Secrets() (Secrets, error) {
	var s Secrets
	var faults Faults
	for _, text := range c.Gossip.Keys {
		key, err := decodeKey(text) // checked when loaded
		if err != nil {
			return Secrets{}, fmt.Errorf("gossip.keys: %w", err)
		}
		s.Keys = append(s.Keys, key)
	}
	if file := c.Gossip.KeyFile; file != "" {
		var fs Faults
		s.Keys, fs = readKeys(file)
		faults = append(faults, fs...)
	}
	if file := c.Admin.TokenFile; file != "" {
		token, err := ReadToken(file)
		if fault, ok := errors.AsType[Fault](err); ok {
			faults = append(faults, fault)
		}
		s.Token = token
	}
	if len(faults) > 0 {
		return Secrets{}, faults
	}
	return s, nil
}

func readKeys(file string) (keys [][]byte, faults Faults) {
	at := strict.Origin{File: file, Line: 1}
	data, err := readSecret(file)
	if err != nil {
		return nil, Faults{at.Fault("gossip.key_file", err.Error(), "write keys to it with subak keygen, one on each line, readable by this user")}
	}
	for text := range strings.Lines(string(data)) {
		text = strings.TrimSpace(text)
		if text != "" && !strings.HasPrefix(text, "#") {
			key, err := decodeKey(text)
			if err != nil {
				faults = append(faults, at.Fault("gossip.key_file", "the key "+err.Error(), "write the output of subak keygen"))
			}
			keys = append(keys, key)
		}
		at.Line++
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		faults = append(faults, strict.Origin{File: file, Line: 1}.Fault("gossip.key_file", fmt.Sprintf("holds %d keys", len(keys)), fmt.Sprintf("write one to %d keys, one on each line", maxKeys)))
	}
	return keys, faults
}

// ReadToken reads an admin token: the first line of a file. The error is a
// [Fault].
func ReadToken(file string) (string, error) {
	at := strict.Origin{File: file, Line: 1}
	data, err := readSecret(file)
	if err != nil {
		return "", at.Fault("admin.token_file", err.Error(), "write a token to it, for example with subak keygen, readable by this user")
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	token := strings.TrimSpace(string(line))
	if len(token) < minTokenBytes || strings.ContainsAny(token, " \t") || !ascii(token) {
		return "", at.Fault("admin.token_file", fmt.Sprintf("the first line is no token of at least %d characters", minTokenBytes), "write the output of subak keygen")
	}
	return token, nil
}

// ascii reports whether s can stand in an HTTP header.
func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

func readSecret(file string) ([]byte, error) {
	data, err := readBounded(file, maxSecretBytes)
	if err == nil && len(data) > maxSecretBytes {
		err = fmt.Errorf("is larger than %d bytes", maxSecretBytes)
	}
	return data, err
}

// missingFiles are warnings about files that a node needs to run and that this
// machine does not have, or that would not do; for config check. They are no
// faults, so that a configuration can be checked anywhere.
func (c *Config) missingFiles() []string {
	var out []string
	there := func(files ...string) bool {
		regular := true
		for _, file := range files {
			info, err := os.Stat(file)
			if file != "" && err != nil {
				out = append(out, fmt.Sprintf("%s is not there yet; a node needs it to run", file))
			}
			regular = regular && (file == "" || err == nil && info.Mode().IsRegular())
		}
		return regular
	}
	there(c.Gossip.KeyFile, c.Admin.TokenFile)
	door := func(path string, t TLS) {
		files := t.Files()
		if files == nil || !there(t.CertFile, t.KeyFile, t.ClientCAFile) {
			return
		}
		if _, err := tlsfiles.Open(*files); err != nil {
			out = append(out, fmt.Sprintf("%s will not do for a node that runs: %s", path, strings.ReplaceAll(err.Error(), "\n", "; ")))
		}
	}
	for i := range c.Listeners {
		door(fmt.Sprintf("listeners[%d].tls", i), c.Listeners[i].TLS)
	}
	for i := range c.Envoy {
		door(fmt.Sprintf("envoy[%d].tls", i), c.Envoy[i].TLS)
	}
	return out
}
