//go:build linux

package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"subak/testbed/evidence"
)

// suffix of a stored outcome.
const suffix = ".json.gz"

// store writes an outcome into a directory.
func store(dir string, o *evidence.Outcome) (err error) {
	path := filepath.Join(dir, o.Run.Scenario+"."+string(o.Run.Variant)+suffix)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := gzip.NewWriter(f)
	if err := json.NewEncoder(z).Encode(o); err != nil {
		return fmt.Errorf("store %s: %w", path, err)
	}
	return z.Close()
}

// restore reads every outcome of a directory, by time.
func restore(dir string) (all []evidence.Outcome, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s holds no outcomes (*%s)", dir, suffix)
	}
	for _, path := range paths {
		o, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b evidence.Outcome) int { return a.Run.Started.Compare(b.Run.Started) })
	return all, nil
}

func read(path string) (o evidence.Outcome, err error) {
	f, err := os.Open(path)
	if err != nil {
		return o, err
	}
	defer func() { _ = f.Close() }() // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return o, err
	}
	return o, json.NewDecoder(z).Decode(&o)
}
