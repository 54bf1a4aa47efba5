package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// dropStart gives back the pages of the program's own file that the start has touched:
// commands, descriptors of protocols, tables of libraries; once when the listeners
// accept, and again when the node has met its peers. Those still in use come back from
// the page cache one by one, which is a few hundred faults.
func dropStart(ctx context.Context) {
	for _, wait := range []time.Duration{time.Second, 5 * time.Second} {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			dropPages()
		}
	}
}

func dropPages() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return // without /proc nobody sees what is resident either
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for _, m := range ownPages(maps, self) {
		// A hint; where it fails the pages stay.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

type pages struct{ from, to uintptr }

// ownPages are the mappings of a file in a process's maps that nobody can have
// written to.
func ownPages(maps io.Reader, file string) (all []pages) {
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || strings.Join(fields[5:], " ") != file || !strings.HasPrefix(fields[1], "r") || fields[1][1] != '-' {
			continue
		}
		var m pages
		if n, err := fmt.Sscanf(fields[0], "%x-%x", &m.from, &m.to); n == 2 && err == nil && m.from < m.to {
			all = append(all, m)
		}
	}
	return all
}
