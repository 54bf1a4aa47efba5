package child

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// quota is a control group with a CPU quota and one process. A parent that is
// killed leaves it behind, empty.
type quota struct {
	dir  string
	home string // the group to which the process belongs
	pid  int
}

// newQuota puts a process into a group of its own. It fails where control groups
// cannot be written.
func newQuota(pid, percent int) (*quota, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	at, err := findCPU(mounts, groups)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(at.parent, "subak-child-")
	if err != nil {
		return nil, err
	}
	q := &quota{dir: dir, home: at.home, pid: pid}
	for _, w := range at.writes(percent, pid) {
		// Without O_CREATE: a file that is not there is a controller that is not.
		if err := write(filepath.Join(dir, w.file), w.text); err != nil {
			return nil, errors.Join(err, os.Remove(dir))
		}
	}
	return q, nil
}

func write(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (q *quota) lift() error {
	// A process that has ended is in no group any more.
	moved := write(filepath.Join(q.home, "cgroup.procs"), strconv.Itoa(q.pid))
	if err := os.Remove(q.dir); err != nil {
		return fmt.Errorf("end the quota: %w", errors.Join(moved, err))
	}
	return nil
}

// cpuGroups is where groups with a CPU quota can be made.
type cpuGroups struct {
	v2     bool
	parent string // directory of the group to make them in
	home   string // directory of this process's own group
}

type groupWrite struct{ file, text string }

// writes are what makes a new group hold a process to its part of a core.
func (g cpuGroups) writes(percent, pid int) []groupWrite {
	period := limitPeriod.Microseconds()
	part := period * int64(percent) / 100
	join := groupWrite{"cgroup.procs", strconv.Itoa(pid)}
	if g.v2 {
		return []groupWrite{{"cpu.max", fmt.Sprintf("%d %d", part, period)}, join}
	}
	return []groupWrite{
		{"cpu.cfs_period_us", strconv.FormatInt(period, 10)}, {"cpu.cfs_quota_us", strconv.FormatInt(part, 10)}, join,
	}
}

var errNoGroups = errors.New("no control groups for CPU are mounted")

// findCPU reads /proc/self/mountinfo and /proc/self/cgroup. The first hierarchy
// with the cpu controller of version 1 wins, for it cannot be in version 2 then.
// In version 2 only the topmost group that can be seen may have both processes
// and groups with quotas; so they are made there.
func findCPU(mounts, groups []byte) (cpuGroups, error) {
	var second *cpuGroups
	lines := bufio.NewScanner(bytes.NewReader(mounts))
	for lines.Scan() {
		left, right, ok := strings.Cut(lines.Text(), " - ")
		before, after := strings.Fields(left), strings.Fields(right)
		if !ok || len(before) < 5 || len(after) < 3 {
			continue
		}
		root, point := before[3], before[4]
		switch {
		case after[0] == "cgroup" && slices.Contains(strings.Split(after[2], ","), "cpu"):
			home := groupDir(groups, "cpu", root, point)
			return cpuGroups{parent: home, home: home}, nil
		case after[0] == "cgroup2" && second == nil:
			second = &cpuGroups{v2: true, parent: point, home: groupDir(groups, "", root, point)}
		}
	}
	if second == nil {
		return cpuGroups{}, errNoGroups
	}
	return *second, nil
}

// groupDir is the directory of this process's group in a hierarchy that is mounted
// at point from root on; point itself if that cannot be told.
func groupDir(groups []byte, controller, root, point string) string {
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || !slices.Contains(strings.Split(parts[1], ","), controller) {
			continue
		}
		if below, ok := strings.CutPrefix(parts[2], strings.TrimSuffix(root, "/")); ok && !strings.HasPrefix(parts[2], "/..") {
			return filepath.Join(point, below)
		}
	}
	return point
}
