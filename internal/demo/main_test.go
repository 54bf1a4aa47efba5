package demo

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

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
	case "subak-hangs":
		fmt.Println("hanging")
		untilTerminated()
		return 0
	case "subak-fails":
		for i := range 40 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		fmt.Fprintln(os.Stderr, "the reason")
		return 3
	}
	return 2
}

func untilTerminated() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
}
