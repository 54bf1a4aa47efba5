// Command subak shares conserved capacity budgets across many locations: it is
// the node, the tool for operators and the demonstration in one binary.
//
// Each file of this package holds one family of commands. A command parses and
// prints; what it does is done by the packages below internal. Commands write to
// the writers of their [program] and return errors; only [program.main] prints
// an error, once, and turns it into an exit code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"subak/internal/api"
	"subak/internal/config"
)

// Exit codes. Scripts may rely on them.
const (
	exitOK          = 0
	exitBroken      = 1 // a claim is broken, a check failed, or anything else went wrong
	exitUsage       = 2 // the command line makes no sense
	exitUnreachable = 3 // no answer from the node
	exitNotReady    = 4 // the node answered, but is not ready
	exitRefused     = 5 // the node said no: token, or unknown name
)

const exitCodes = `Exit codes:
  0  done; for status also: ready, and every budget is kept
  1  a claim is broken or a check failed (budget over its limit, configuration
     with faults, demo verdict), or any other failure
  2  the command line makes no sense
  3  no answer from the node
  4  the node answered but is not ready
  5  the node refused: wrong or missing token, unknown budget, class or node, or
     a change that conflicts with what is in force`

// program is one invocation: what a command may read and write.
type program struct {
	env      []string // NAME=VALUE
	out, err io.Writer
	started  bool // a command has begun; errors before that are usage errors
}

func main() {
	p := &program{env: os.Environ(), out: os.Stdout, err: os.Stderr}
	os.Exit(p.main(context.Background(), os.Args[1:]))
}

// main runs one command line and returns the exit code.
func (p *program) main(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	f := p.failure(ran, err)
	if f.what != nil {
		fmt.Fprintf(p.err, "subak: %v\n", f.what)
	}
	if f.mend != "" {
		fmt.Fprintf(p.err, "  mend: %s\n", f.mend)
	}
	return f.code
}

// failure is an error with an exit code and advice.
type failure struct {
	code int
	what error // nil when the command has said everything already
	mend string
}

func (f *failure) Error() string {
	if f.what == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.what.Error()
}

func (f *failure) Unwrap() error { return f.what }

// failure says what an error means for the caller of the program.
func (p *program) failure(ran *cobra.Command, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if !p.started {
		return &failure{exitUsage, err, fmt.Sprintf("see %s --help", ran.CommandPath())}
	}
	if faults, ok := errors.AsType[config.Faults](err); ok {
		return &failure{exitBroken, fmt.Errorf("%s:\n%w", count(len(faults), "fault", "faults"), faults), ""}
	}
	if _, ok := errors.AsType[*api.Unreachable](err); ok {
		return &failure{exitUnreachable, err, "is the node running? name its admin address by --admin HOST:PORT, --admin unix:/PATH or " + config.EnvAdmin}
	}
	if refused, ok := errors.AsType[*api.Refused](err); ok {
		return refusal(refused)
	}
	if _, ok := errors.AsType[*api.Garbled](err); ok {
		return &failure{exitUnreachable, err, "name the admin address (admin.listen), not that of a listener"}
	}
	return &failure{exitBroken, err, ""}
}

func refusal(err *api.Refused) *failure {
	f := &failure{exitRefused, err, ""}
	switch err.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		f.mend = "name the file with the node's token by --token-file or " + config.EnvTokenFile
	case http.StatusNotFound:
		f.mend = "see subak status and subak members for the names"
	}
	return f
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// getenv looks name up as os.Getenv does.
func (p *program) getenv(name string) string {
	for i := len(p.env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(p.env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// root returns the tree of all commands.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "subak",
		Short: "Share one capacity budget across many locations, without a controller",
		Long: `Subak shares one conserved capacity budget (requests or bytes per second) across
many locations and service classes without a controller. Run one node per
location; together they never admit more than the budget.

` + exitCodes,
		Example: `  subak demo                                  watch five nodes share a budget
  subak config example > subak.yaml           start a configuration
  subak run --config subak.yaml --node ams    run a node
  subak status                                ask it how it is
  subak apply -f subak.yaml                   change nodes and budgets while all run`,
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { p.started = true },
	}
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.AddCommand(p.runCommand(), p.demoCommand(),
		p.statusCommand(), p.healthCommand(), p.doctorCommand(), p.membersCommand(), p.explainCommand(), p.freezeCommand(), p.unfreezeCommand(),
		p.applyCommand(), p.forgetCommand(), p.changeCommand(), p.simCommand(), p.traceCommand(),
		p.configCommand(), p.keygenCommand(), p.versionCommand(), p.manCommand(), p.originCommand())
	return root
}
