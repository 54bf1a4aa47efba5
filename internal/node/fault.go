package node

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"subak/internal/state"
)

// fault is an error of the start that names the field of the configuration and
// the mend, as those of the configuration itself do.
func fault(field string, err error, mend string) error {
	return fmt.Errorf("%s: %w; mend: %s", field, err, mend)
}

// listenFault explains why an address could not be bound; an error of another
// kind stays as it is. memberlist hands on the text of an error only.
func listenFault(field string, err error) error {
	if mend := ListenMend(err); mend != "" {
		return fault(field, err, mend)
	}
	return err
}

// ListenMend says what mends an address that could not be bound; "" for other
// errors and none.
func ListenMend(err error) string {
	if err == nil {
		return ""
	}
	is := func(e syscall.Errno) bool { return errors.Is(err, e) || strings.Contains(err.Error(), e.Error()) }
	switch {
	case is(syscall.EADDRINUSE):
		return "stop the process that listens there, or write another port"
	case is(syscall.EADDRNOTAVAIL):
		return "write an address of this machine, or 0.0.0.0 or [::] for all of them"
	case is(syscall.EACCES):
		return "write a port from 1024, or a path that this user may write, or give the process the right to it"
	case is(syscall.ENOENT):
		return "make the directory of the socket"
	}
	return ""
}

// tlsFault explains why the files of a door's TLS could not be used.
func tlsFault(field string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return fault(field, err, "name files that this user may read")
	}
	return fault(field, err, "name PEM files: a certificate with its chain, and the key that belongs to it")
}

// stateFault explains why the data directory could not be used.
func stateFault(err error) error {
	const field = "cluster.data_dir"
	switch {
	case errors.Is(err, state.ErrLocked):
		return fault(field, err, "stop the other process of this node; each node needs a directory of its own")
	case errors.Is(err, state.ErrForeign):
		return fault(field, err, "name the directory of this node; only if its memory may go, empty it")
	case errors.Is(err, state.ErrFormat):
		return fault(field, err, "start the version that wrote it, or a later one; only if its memory may go, empty the directory")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault(field, err, "free the disk of this directory")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
		return fault(field, err, "name a directory that this user may make and write")
	}
	return fault(field, err, "replace the disk, or name another directory; without its memory the node gets its base back from its peers")
}
