//go:build linux

package run

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// doctorWait is how long one examination may take.
const doctorWait = 20 * time.Second

// doctor has each node examined by subak doctor, from inside its host.
func (d *deed) doctor(ctx context.Context) error {
	return each(d.nodes, func(_, i int) error {
		ctx, cancel := context.WithTimeout(ctx, doctorWait)
		defer cancel()
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, d.opt.Binaries.Subak, "doctor", "--config", filepath.Join(d.dir, d.name(i)+".yaml"))
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := d.host(i).Start(cmd); err != nil {
			return err
		}
		verdict := "ok"
		if err := cmd.Wait(); err != nil {
			verdict = err.Error() + ": " + strings.Join(strings.Fields(said.String()), " ")
		}
		d.record.event(d.Name, i, "doctor", "%s", verdict)
		return nil
	})
}
