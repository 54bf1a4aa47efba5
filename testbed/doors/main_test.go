package doors

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// binary is the subak that the tests run; built once.
var binary string //nolint:gochecknoglobals // set before any test runs

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "subak-doors-")
	if err == nil {
		binary = filepath.Join(dir, "subak")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", binary, "subak/cmd/node").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w:\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot build the binary under test:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}
