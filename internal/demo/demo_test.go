package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// asBinary makes this test binary the one that Run starts: its nodes play the
// role, its origin is a real one.
func asBinary(t *testing.T, role string) (opt Options, out *bytes.Buffer, tmp string) {
	t.Helper()
	t.Setenv(helperEnv, role)
	t.Setenv("SUBAK_NODE", "must not reach the children")
	tmp = t.TempDir()
	t.Setenv("TMPDIR", tmp)
	out = &bytes.Buffer{}
	return Options{Exe: os.Args[0], Out: out, Seed: 1}, out, tmp
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestANodeThatFailsEndsTheDemoWithItsLastLinesAndLeavesNothing(t *testing.T) {
	opt, _, tmp := asBinary(t, "subak-fails")
	v, err := Run(t.Context(), opt)
	if err == nil || !strings.Contains(err.Error(), "the reason") || !strings.Contains(err.Error(), "exit status 3") || v.OK() {
		t.Errorf("verdict %+v, error %v", v, err)
	}
	checkEmpty(t, tmp)
}

// cancelOn cancels when text is written.
type cancelOn struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelOn) Write(b []byte) (int, error) {
	if strings.Contains(string(b), c.text) {
		c.cancel()
	}
	return len(b), nil
}

func TestCancellingWhileNodesStartLeavesNothing(t *testing.T) {
	opt, _, tmp := asBinary(t, "subak-hangs")
	ctx, cancel := context.WithCancel(t.Context())
	opt.Out = cancelOn{"0 of 5 nodes ready", cancel}
	if _, err := Run(ctx, opt); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want cancelled", err)
	}
	checkEmpty(t, tmp)
}

func TestABinaryThatIsMissingIsAnError(t *testing.T) {
	opt, _, tmp := asBinary(t, "")
	opt.Exe = tmp + "/nothing"
	if _, err := Run(t.Context(), opt); err == nil || !strings.Contains(err.Error(), "origin") {
		t.Errorf("error %v", err)
	}
	checkEmpty(t, tmp)
}

func TestOptionsOutOfRangeAreAllNamed(t *testing.T) {
	_, err := Run(t.Context(), Options{Scale: 0.1, Limit: 5})
	for _, want := range []string{"Exe and Out", "scale 0.1", "limit 5"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s in %v", want, err)
		}
	}
}
