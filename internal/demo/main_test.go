package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperEnv makes the test binary act as a child process of the demo.
const helperEnv = "DEMO_TEST_HELPER"

func TestMain(m *testing.M) {
	role := os.Getenv(helperEnv)
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	// As the binary that Run starts, it is told by its arguments what to be.
	if role == "subak-fails" || role == "subak-hangs" {
		if len(os.Args) > 1 && os.Args[1] == "demo-origin" {
			role = "origin"
		}
	}
	os.Exit(helper(role))
}

func helper(role string) int {
	switch role {
	case "origin":
		if err := ServeOrigin(context.Background()); err != nil {
			return 1
		}
		return 0
	case "hangs", "subak-hangs":
		fmt.Println("hanging")
		untilTerminated()
		return 0
	case "waits": // until its input ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "fails", "subak-fails":
		for i := range 40 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		fmt.Fprintln(os.Stderr, "the reason")
		return 3
	case "parent": // starts a child that shares its output, and hangs
		s := newSupervisor()
		if _, err := s.start(launch{name: "child", path: os.Args[0], env: []string{helperEnv + "=hangs"}, stdout: os.Stdout}); err != nil {
			return 1
		}
		untilTerminated()
		return 0
	}
	return 2
}

func untilTerminated() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
}

// helperLaunch is this binary in a role.
func helperLaunch(role string) launch {
	// A binary built for coverage complains at its end unless it may write.
	return launch{name: role, path: os.Args[0], env: []string{helperEnv + "=" + role, "GOCOVERDIR=" + os.TempDir()}}
}

// withSupervisor closes the supervisor at the end of the test.
func withSupervisor(t *testing.T) *supervisor {
	s := newSupervisor()
	t.Cleanup(func() { s.close(time.Minute) })
	return s
}

// lineOf waits for a line of a child.
func lineOf(t *testing.T, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("no line from the child: %v", err)
	}
	return line
}
