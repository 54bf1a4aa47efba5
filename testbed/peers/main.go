// Command bench-peers measures Subak beside the limiters that Go programs use
// and beside the least that a door can be, all in one run, and judges the claims
// that are made of it. See package measure for how two things are compared.
//
// It is a module of its own, so that what Subak is compared with is no
// dependency of it. Exit codes: 0 every claim holds, 1 one falls short or could
// not be measured, 2 the command line makes no sense.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"subak/testbed/peers/drive"
	"subak/testbed/peers/floor"
	"subak/testbed/peers/place"
)

const (
	exitShort = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := program(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func program(ctx context.Context, args []string, out, errs io.Writer) int {
	code := 0
	root := rootCommand(out, errs, &code)
	root.AddCommand(pinCommand(), driveCommand(out), serveCommand(out))
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(errs, "bench-peers:", err)
		if code == 0 {
			code = exitUsage
		}
	}
	return code
}

// pinCommand is how this program starts others on some cores.
func pinCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pin CORES PROGRAM [ARGS...]", Hidden: true, Args: cobra.MinimumNArgs(2), DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return place.Pin(args[0], args[1], args[2:]) },
	}
}

// driveCommand is the load generator as a process of its own.
func driveCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "drive", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return drive.Serve(c.InOrStdin(), out) },
	}
}

// serveCommand is the floors as processes of their own.
func serveCommand(out io.Writer) *cobra.Command {
	collect := 0
	c := &cobra.Command{
		Use: "serve KIND [BACKEND]", Hidden: true, Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			if collect > 0 {
				debug.SetGCPercent(collect)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			fmt.Fprintln(out, l.Addr())
			switch backend := args[len(args)-1]; args[0] {
			case "allow":
				return floor.Allow(l)
			case "always-ok":
				return floor.AlwaysOK(l)
			case "backend":
				return floor.Backend(l)
			case "proxy", "proxy-tuned":
				return floor.Proxy(l, backend, args[0] == "proxy-tuned")
			}
			return fmt.Errorf("serve: no server %q", args[0])
		},
	}
	c.Flags().IntVar(&collect, "gogc", 0, "as the variable GOGC; 0 is Go's own")
	return c
}
