package main

import (
	"context"
	"errors"

	"subak/internal/config"
)

var errNoConfig = errors.New("no configuration file is named")

var errNotBuilt = errors.New("not built yet")

// startNode runs a node until ctx ends.
func startNode(context.Context, *program, *config.Config) error { return errNotBuilt }

// startDemo runs the demonstration.
func startDemo(context.Context, *program, demoOptions) error { return errNotBuilt }
