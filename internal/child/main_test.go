package child

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperEnv makes the test binary act as a child.
const helperEnv = "CHILD_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperEnv); role != "" {
		os.Exit(helper(role))
	}
	goleak.VerifyTestMain(m)
}

func helper(role string) int {
	switch role {
	case "hangs":
		wait := terminated()
		fmt.Println("hanging")
		<-wait
		return 0
	case "stubborn": // does not end when asked to
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("hanging")
		select {}
	case "burns": // all the CPU it can get
		fmt.Println("burning")
		for n := 0; ; n++ {
			if n < 0 {
				n = 0
			}
		}
	case "fails":
		for i := range 40 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		fmt.Fprintln(os.Stderr, "the reason")
		return 3
	case "parent": // starts a child that shares its output, and hangs
		s, wait := New(), terminated()
		if _, err := s.Start(Launch{Name: "child", Path: os.Args[0], Env: []string{helperEnv + "=hangs"}, Stdout: os.Stdout}); err != nil {
			return 1
		}
		<-wait
		return 0
	}
	return 2
}

func terminated() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	return c
}

// role is this binary in a role.
func role(name string) Launch {
	// A binary built for coverage complains at its end unless it may write; one built
	// for races waits a second there.
	return Launch{Name: name, Path: os.Args[0], Env: []string{helperEnv + "=" + name, "GOCOVERDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0"}}
}

// withSupervisor closes the supervisor at the end of the test.
func withSupervisor(t *testing.T) *Supervisor {
	s := New()
	t.Cleanup(func() { s.Close(time.Minute) })
	return s
}

// started is a child in a role that has said its first line.
func started(t *testing.T, s *Supervisor, name string) *Process {
	t.Helper()
	l, line := role(name), NewFirstLine()
	l.Stdout = line
	p, err := s.Start(l)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-line.Ready():
	case <-p.Done():
		t.Fatal(p.Failure())
	}
	return p
}
