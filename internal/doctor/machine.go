package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// filesMin is how many files a node should be able to have open: two for each
// request under way, and some hundred of its own.
const filesMin = 4096

// checkDataDir tries to write where the durable state goes. A missing directory
// is not made: whoever runs the node shall own it.
func (x *examination) checkDataDir() {
	const name = "data_dir"
	dir := x.cfg.Cluster.DataDir
	if dir == "" {
		return // the configuration's warning has said it
	}
	mend := fmt.Sprintf("make %s writable for the user that runs the node; this was tried as %s", dir, userName())
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		above := filepath.Dir(dir)
		for above != filepath.Dir(above) {
			if _, err = os.Stat(above); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			above = filepath.Dir(above)
		}
		if err := unix.Access(above, unix.W_OK|unix.X_OK); err != nil {
			x.fail(name, mend, "%s does not exist and cannot be made in %s: %v", dir, above, err)
			return
		}
		x.ok(name, "%s does not exist yet; the node will make it", dir)
	case err != nil:
		x.fail(name, mend, "%v", err)
	case !info.IsDir():
		x.fail(name, "name a directory", "%s is no directory", dir)
	default:
		if err := tryWrite(dir); err != nil {
			x.fail(name, mend, "%v", err)
			return
		}
		x.ok(name, "%s can be written as %s", dir, userName())
	}
}

// tryWrite writes a file as the node does, up to the disk.
func tryWrite(dir string) (err error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}()
	if _, err = f.Write(make([]byte, 4096)); err != nil {
		return err
	}
	return f.Sync()
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("user %d", os.Getuid())
}

// checkFiles looks at the limit of this process; the node's may be another.
func (x *examination) checkFiles() {
	const name = "files"
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		x.warn(name, "see ulimit -n", "the limit of open files cannot be read: %v", err)
		return
	}
	// The Go runtime raises the soft limit to the hard one at start.
	if limit.Max < filesMin {
		x.warn(name, fmt.Sprintf("raise it to %d or more: LimitNOFILE= of systemd, ulimit -Hn of a shell", filesMin),
			"%d files may be open at a time, two for each request under way", limit.Max)
		return
	}
	x.ok(name, "%d files may be open at a time", limit.Max)
}
