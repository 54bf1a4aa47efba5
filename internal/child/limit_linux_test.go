package child

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func pdeathsig(a *syscall.SysProcAttr) syscall.Signal { return a.Pdeathsig }

// state is the letter of a process's state in /proc.
func state(t *testing.T, p *Process) string {
	t.Helper()
	proc, err := procfs.NewProc(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	stat, err := proc.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return stat.State
}

// burn waits until a child has used so much more CPU, and returns how much it used
// and how long that took.
func burn(t *testing.T, p *Process, cpu time.Duration) (used, took time.Duration) {
	t.Helper()
	began, first := time.Now(), usage(t, p).CPU
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for used < cpu {
		<-tick.C
		used = time.Duration(usage(t, p).CPU - first)
	}
	return used, time.Since(began)
}

func usage(t *testing.T, p *Process) Usage {
	t.Helper()
	u, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAPausedChildDoesNothingUntilItIsResumed(t *testing.T) {
	p := started(t, withSupervisor(t), "burns")
	burn(t, p, 20*time.Millisecond)
	if err := p.Resume(); err != nil { // nothing to resume
		t.Error(err)
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if got, before := state(t, p), usage(t, p).CPU; got != "T" || usage(t, p).CPU != before {
		t.Errorf("paused, its state is %s, want T", got)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	burn(t, p, 20*time.Millisecond)
	p.Kill()
	if err := p.Pause(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a pause of a dead child: %v", err)
	}
	if _, err := p.Usage(); err == nil {
		t.Error("a dead child uses something")
	}
}

func TestALimitBitesAndCanBeChangedAndLifted(t *testing.T) {
	p := started(t, withSupervisor(t), "burns")
	if rss := usage(t, p).RSS; rss < 100<<10 || rss > 1<<30 {
		t.Errorf("%d bytes in memory", rss)
	}
	how, err := p.Limit(50)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("limited by %s", how)
	if _, err := p.Limit(10); err != nil {
		t.Fatal(err)
	}
	burn(t, p, limitPeriod/2) // what the limit before had granted for a period
	checkBite(t, p, 10)
	if _, err := p.Limit(0); err != nil || p.limit != nil {
		t.Errorf("not lifted: %v", err)
	}
	burn(t, p, 50*time.Millisecond)
	if _, err := p.Limit(-1); err == nil {
		t.Error("a limit of -1 % is taken")
	}
	if _, err := p.Limit(20); err != nil {
		t.Fatal(err)
	}
	p.Kill() // with its limit
	if _, err := p.Limit(30); err == nil {
		t.Error("a dead child was limited")
	}
}

// checkBite fails if a child that wants more gets more than its part. That it gets
// less on a busy machine proves nothing.
func checkBite(t *testing.T, p *Process, percent int) {
	t.Helper()
	used, took := burn(t, p, 40*time.Millisecond)
	// One period's part may have been left, and /proc counts in 10 ms.
	most := took*time.Duration(percent)/100 + limitPeriod*time.Duration(percent)/100 + 20*time.Millisecond
	if used > most {
		t.Errorf("used %v of CPU within %v, want at most %v", used, took, most)
	}
}

func TestTurnsStandInWhereThereAreNoQuotas(t *testing.T) {
	s := withSupervisor(t)
	p := started(t, s, "burns")
	if err := p.swapLimit(p.takeTurns(70)); err != nil {
		t.Fatal(err)
	}
	for seen := ""; seen != "T"; seen = state(t, p) {
	}
	if err := p.Pause(); err != nil { // in either turn
		t.Fatal(err)
	}
	before := usage(t, p).CPU
	burn(t, started(t, s, "burns"), 2*limitPeriod) // which takes as long at least
	if got := usage(t, p).CPU; got != before || state(t, p) != "T" {
		t.Errorf("its turns ended the pause: it used %v more", time.Duration(got-before))
	}
	if _, err := p.Limit(0); err != nil || state(t, p) != "T" {
		t.Errorf("the end of the limit ended the pause (%v)", err)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	burn(t, p, 20*time.Millisecond)
	if err := p.swapLimit(p.takeTurns(50)); err != nil {
		t.Fatal(err)
	}
	p.Kill() // in either turn
}

func TestTheGroupsForQuotasAreFound(t *testing.T) {
	v1 := "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	v2 := "31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
	other := "29 25 0:25 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n22 1 8:1 / / rw - ext4 /dev/sda1 rw\nrubbish\n"
	for _, c := range []struct {
		name, mounts, groups string
		want                 cpuGroups
	}{
		{"version 1", other + v1, "4:memory:/x\n1:cpu,cpuacct:/a/b\n", cpuGroups{false, "/sys/fs/cgroup/cpu,cpuacct/a/b", "/sys/fs/cgroup/cpu,cpuacct/a/b"}},
		{"both", other + v2 + v1, "1:cpu,cpuacct:/\n0::/c\n", cpuGroups{false, "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"}},
		{"version 2", other + v2, "0::/user.slice/x\n", cpuGroups{true, "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/user.slice/x"}},
		{"mounted from within", strings.Replace(v1, " / ", " /docker/abc ", 1), "1:cpu,cpuacct:/docker/abc/y\n", cpuGroups{false, "/sys/fs/cgroup/cpu,cpuacct/y", "/sys/fs/cgroup/cpu,cpuacct/y"}},
		{"outside of what is mounted", v1, "1:cpu,cpuacct:/../z\n", cpuGroups{false, "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"}},
	} {
		got, err := findCPU([]byte(c.mounts), []byte(c.groups))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v (%v), want %+v", c.name, got, err, c.want)
		}
	}
	if _, err := findCPU([]byte(other), nil); !errors.Is(err, errNoGroups) {
		t.Errorf("without any: %v", err)
	}
}

func TestAGroupIsToldItsQuotaBeforeTheProcess(t *testing.T) {
	var got []string
	for _, g := range []cpuGroups{{v2: true}, {}} {
		for _, w := range g.writes(25, 42) {
			got = append(got, w.file+"="+w.text)
		}
	}
	want := "cpu.max=25000 100000, cgroup.procs=42, cpu.cfs_period_us=100000, cpu.cfs_quota_us=25000, cgroup.procs=42"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("writes %s, want %s", s, want)
	}
}

func TestNoGroupIsLeftBehind(t *testing.T) {
	p := started(t, withSupervisor(t), "burns")
	if _, err := p.Limit(20); err != nil {
		t.Fatal(err)
	}
	q, ok := p.limit.(*quota)
	if !ok {
		t.Log("there are no quotas here")
		return
	}
	p.Kill()
	if _, err := os.Stat(q.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left (%v)", filepath.Base(q.dir), err)
	}
}
