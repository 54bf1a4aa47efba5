package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"subak/internal/strict"
)

// Default is the configuration of an empty file. It does not pass the checks:
// a cluster's name, nodes and budgets have no defaults.
func Default() *Config {
	c := &Config{}
	strict.SetDefaults(reflect.ValueOf(c).Elem())
	return c
}

// Load reads files, each over the one before it, then env (NAME=VALUE, as
// os.Environ gives it), then the changed flags of flags (see [AddFlags]; nil
// for none), and checks the result. The error, if any, is a [Faults] with
// everything that is wrong.
func Load(files, env []string, flags *pflag.FlagSet) (*Config, error) {
	return load(files, env, flags, true)
}

// LoadShared is [Load] for a file that all nodes share: node.name may be
// missing.
func LoadShared(files, env []string, flags *pflag.FlagSet) (*Config, error) {
	return load(files, env, flags, false)
}

func load(files, env []string, flags *pflag.FlagSet, self bool) (*Config, error) {
	c, r := Default(), newReport("")
	if len(files) > 0 {
		r = newReport(files[0])
	}
	for _, file := range files {
		data, err := readBounded(file, strict.MaxBytes)
		if err != nil {
			r.Unreadable(strict.Origin{File: file, Line: 1}, "", err.Error(), "name a readable file, or write one with subak config example")
			continue
		}
		r.Decode(file, data, c)
	}
	applyEnv(r, c, env)
	applyFlags(r, c, flags)
	// A file that is no YAML leaves nothing to check: everything would be missing.
	if !r.Bad("") {
		check(r, c, self)
	}
	if !r.OK() {
		return nil, r.Faults()
	}
	return c, nil
}

// Parse is [LoadShared] for the bytes of one file, called name in messages, without
// environment and flags.
func Parse(name string, data []byte) (*Config, error) {
	c, r := Default(), newReport(name)
	r.Decode(name, data, c)
	if !r.Bad("") {
		check(r, c, false)
	}
	if !r.OK() {
		return nil, r.Faults()
	}
	return c, nil
}

// readBounded reads a file up to one byte over the bound, by which the caller
// knows that it is too large.
func readBounded(file string, bound int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, unreadableFile(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, bound+1))
	if err != nil {
		return nil, unreadableFile(err)
	}
	return data, nil
}

// unreadableFile leaves out the path, which the fault's place has already.
func unreadableFile(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return fmt.Errorf("cannot be read: %w", err)
}

// applyEnv sets fields from SUBAK_ variables. Unknown ones are a warning, not a
// fault: Kubernetes invents such names for a service called subak.
func applyEnv(r *strict.Report, c *Config, env []string) {
	known := map[string]setting{}
	names := []string{EnvAdmin, EnvTokenFile, EnvConfig}
	ours := len(names)
	for _, s := range settings() {
		known[s.env] = s
		names = append(names, s.env)
	}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, EnvPrefix) || slices.Contains(names[:ours], name) {
			continue
		}
		s, ok := known[name]
		if ok {
			assign(r, s, c, value, strict.Origin{File: "env " + name})
		} else if best := strict.Nearest(name, names); best != "" {
			c.warnings = append(c.warnings, fmt.Sprintf("environment variable %s is unknown and ignored; did you mean %s?", name, best))
		}
	}
}

// The environment variables behind flags that are no fields: --admin and
// --token-file of the commands that talk to a running node, and --config.
const (
	EnvAdmin     = EnvPrefix + "ADMIN"
	EnvTokenFile = EnvPrefix + "TOKEN_FILE"
	EnvConfig    = EnvPrefix + "CONFIG"
)

// bootstrapFlag is short for --cluster-state=new.
const bootstrapFlag = "bootstrap"

// AddFlags adds a flag for every field that has one, and --bootstrap.
func AddFlags(flags *pflag.FlagSet) {
	for _, s := range settings() {
		if s.flag == "" {
			continue
		}
		usage := fmt.Sprintf("%s (env %s", s.path, s.env)
		if s.unset != "" {
			usage += "; default " + s.unset
		}
		flags.String(s.flag, "", usage+")")
		if s.isBool {
			flags.Lookup(s.flag).NoOptDefVal = "true"
		}
	}
	flags.Bool(bootstrapFlag, false, "first start of the whole cluster: cluster.state=new")
}

func applyFlags(r *strict.Report, c *Config, flags *pflag.FlagSet) {
	if flags == nil {
		return
	}
	for _, s := range settings() {
		if f := flags.Lookup(s.flag); s.flag != "" && f != nil && f.Changed {
			assign(r, s, c, f.Value.String(), strict.Origin{File: "flag --" + s.flag})
		}
	}
	if f := flags.Lookup(bootstrapFlag); f != nil && f.Changed && f.Value.String() == "true" {
		c.Cluster.State = New
		r.Override("cluster.state", strict.Origin{File: "flag --" + bootstrapFlag})
	}
}

// assign overrides one field, and forgets what was wrong with the value that it
// replaces only in so far as the new one is judged on its own.
func assign(r *strict.Report, s setting, c *Config, text string, from strict.Origin) {
	r.Override(s.path, from)
	if bad, ok := errors.AsType[*strict.ValueError](s.set(c, text)); ok {
		r.Unreadable(from, s.path, bad.What, bad.Mend)
	}
}
