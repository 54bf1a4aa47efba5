//go:build linux

// Command testbed plays scenarios with real subak processes on an emulated
// wide-area network and judges their claims; see package scenario for what a
// scenario is and package run for how it is played.
//
// "testbed run" builds the binaries it needs, runs itself again in namespaces of
// its own, plays one scenario after the other, stores each outcome, and ends with
// one line. Exit codes: 0 every claim kept, 1 a claim broken or a run that failed,
// 2 the command line makes no sense or something is missing here.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"subak/testbed/wan"
)

const (
	exitBroken = 1
	exitUsage  = 2
)

// failure is an error with an exit code; what has been said already has no text.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return "claims are broken"
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func main() {
	if os.Getenv(builtVariable) != "" {
		// One of the processes that a first one has started: this is the way in, and
		// for those that only serve the others it does not return.
		if err := wan.Isolate(); err != nil {
			fmt.Fprintln(os.Stderr, "testbed:", err)
			os.Exit(exitUsage)
		}
	}
	os.Exit(program(os.Args[1:], os.Stdout, os.Stderr))
}

func program(args []string, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:   "testbed",
		Short: "Play scenarios with real nodes on an emulated WAN and judge their claims",
		// Errors are printed once, here.
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetOut(out)
	root.SetErr(errs)
	root.SetArgs(args)
	root.AddCommand(listCommand(out), checkCommand(out), runCommand(out), reportCommand(out))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{exitUsage, err}
	}
	if f.err != nil {
		fmt.Fprintf(errs, "testbed: %v\n", f.err)
	}
	return f.code
}
