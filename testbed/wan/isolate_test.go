//go:build linux

package wan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// roleVariable makes the test binary a program that uses Isolate, for a test to
// watch from outside.
const roleVariable = "WAN_TEST_ROLE"

// play is the program. It is isolated from the first line on.
func play(role string) int {
	if err := Isolate(); err != nil {
		fmt.Println("error:", err)
		fmt.Println("missing:", strings.Join(Check(), "; "))
		return 3
	}
	switch role {
	case "streams":
		in, _ := io.ReadAll(os.Stdin)
		fmt.Printf("%s %s uid %d", in, strings.Join(os.Args[1:], " "), os.Getuid())
		fmt.Fprint(os.Stderr, "trouble")
		return 7
	case "look":
		return look()
	case "signals":
		caught := make(chan os.Signal, 10)
		signal.Notify(caught, unix.SIGTERM, unix.SIGINT, unix.SIGUSR2)
		fmt.Println("ready")
		for s := range caught {
			fmt.Println(s)
			if s == unix.SIGUSR2 {
				return 5
			}
		}
	case "die":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case "names":
		return names()
	case "network", "network-wait":
		return overNetwork(role == "network-wait")
	}
	select {}
}

// look prints what the inside is like.
func look() int {
	links, _ := net.Interfaces()
	for _, l := range links {
		fmt.Println("link", l.Name, l.Flags&net.FlagUp != 0)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	fmt.Println("processes", len(processes))
	groups, _ := os.ReadDir("/sys/fs/cgroup")
	fmt.Println("cgroups", len(groups) > 0)
	err := unix.Mount("tmpfs", "/mnt", "tmpfs", 0, "")
	fmt.Println("mount", err)
	return 0
}

// names prints the files of the namespaces while there is a network, and after.
func names() int {
	n, err := New(Config{Hosts: []string{"ams", "fra"}})
	if err != nil {
		fmt.Println("error:", err)
		return 4
	}
	files, _ := filepath.Glob(namesDir + "/*")
	fmt.Println(files)
	err = n.Close()
	files, _ = filepath.Glob(namesDir + "/*")
	fmt.Println(files, err)
	return 0
}

// overNetwork sends a datagram from one host to another.
func overNetwork(wait bool) int {
	n, err := New(Config{Hosts: []string{"ams", "fra"}})
	if err != nil {
		fmt.Println("error:", err)
		return 4
	}
	x, errX := n.Hosts()[0].ListenPacket("udp", address(n.Hosts()[0].V4, 0))
	y, errY := n.Hosts()[1].ListenPacket("udp", address(n.Hosts()[1].V4, 0))
	if err := errors.Join(errX, errY); err != nil {
		fmt.Println("error:", err)
		return 4
	}
	_, _ = x.WriteTo([]byte("carried"), y.LocalAddr())
	b := make([]byte, 100)
	k, _, err := y.ReadFrom(b)
	fmt.Println(string(b[:k]), err)
	if wait {
		cmd := exec.Command("sleep", "1000")
		cmd.Stdout = os.Stdout // held open for as long as it lives
		fmt.Println(n.Hosts()[0].Start(cmd))
		select {}
	}
	fmt.Println(n.Close())
	return 0
}

// program is the test binary in a role.
func program(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	needIsolation(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	// A program built with the race detector sleeps a second at each exit.
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestStreamsArgumentsAndStatusPassThrough(t *testing.T) {
	cmd := program(t, "streams", "one", "two")
	var out, trouble bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("input"), &out, &trouble
	if err := cmd.Run(); status(err) != 7 {
		t.Errorf("ended with %v, want status 7", err)
	}
	if out.String() != "input one two uid 0" || trouble.String() != "trouble" {
		t.Errorf("stdout %q, stderr %q", out.String(), trouble.String())
	}
}

func TestInsideIsOnlyALoopbackAndAFreshProc(t *testing.T) {
	cmd := program(t, "look")
	// What is mounted in a copy of a shared mount is seen in the original.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := "link lo true\nprocesses 2\ncgroups true\nmount <nil>\n"
	if string(out) != want {
		t.Errorf("inside is\n%swant\n%s", out, want)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), " /mnt tmpfs") {
		t.Errorf("a mount made inside is seen outside (%v)", err)
	}
}

func TestNamespacesHaveFilesWhereIPNetnsLooks(t *testing.T) {
	cmd := program(t, "names")
	dir := filepath.Dir(namesDir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	if err := os.Mkdir(namesDir, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if want := "[/run/netns/ams /run/netns/fra]\n[] <nil>\n"; err != nil || string(out) != want {
		t.Errorf("%v:\n%swant\n%s", err, out, want)
	}
	if files, err := os.ReadDir(namesDir); err != nil || len(files) > 0 {
		t.Errorf("outside there are %v, %v", files, err)
	}
}

func TestSignalsReachTheInnerProcessOnce(t *testing.T) {
	cmd := program(t, "signals")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		if _, err := io.ReadFull(pipe, b); err != nil || string(b) != want {
			t.Fatalf("it says %q, %v, want %q", b, err, want)
		}
	}
	expect("ready\n")
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGTERM, unix.SIGUSR2} {
		if signal.Ignored(s) { // what the shell ignores for a job in the background stays ignored
			continue
		}
		// To the whole group, as a terminal does at Ctrl-C.
		if err := unix.Kill(-cmd.Process.Pid, s); err != nil {
			t.Fatal(err)
		}
		expect(s.String() + "\n")
	}
	rest, err := io.ReadAll(pipe)
	if len(rest) > 0 || err != nil {
		t.Errorf("it says more: %q, %v", rest, err)
	}
	if err := cmd.Wait(); status(err) != 5 {
		t.Errorf("ended with %v, want status 5", err)
	}
}

func TestDeathBySignalIsTheStatus(t *testing.T) {
	if err := program(t, "die").Run(); status(err) != 128+int(unix.SIGKILL) {
		t.Errorf("ended with %v, want status 137", err)
	}
}

func TestKillingTheOuterProcessKillsEverythingInside(t *testing.T) {
	cmd := program(t, "network-wait")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	want := "carried <nil>\n<nil>\n"
	b := make([]byte, len(want))
	if _, err := io.ReadFull(pipe, b); err != nil || string(b) != want {
		t.Fatalf("it says %q, %v", b, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Everything inside holds the pipe open: it ends when the last one is dead.
	if _, err := io.Copy(io.Discard, pipe); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// device0666 puts an empty directory, or one with a device that everybody may open,
// over /dev/net for the length of a test. The mounts of this process are private.
func device0666(t *testing.T, there bool) {
	t.Helper()
	needIsolation(t)
	dir := filepath.Dir(tunPath)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if !there {
		return
	}
	if err := unix.Mknod(tunPath, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))); err != nil {
		t.Skipf("a device node cannot be made here: %v", err) // not real root
	}
	if err := os.Chmod(tunPath, 0o666); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

// asNobody makes a program one of an ordinary user.
func asNobody(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	return cmd
}

func TestAnOrdinaryUserGetsANetworkThroughAUserNamespace(t *testing.T) {
	device0666(t, true)
	out, err := asNobody(program(t, "network")).CombinedOutput()
	if err != nil || string(out) != "carried <nil>\n<nil>\n" {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestWithoutTheDeviceIsolateSaysWhatIsMissing(t *testing.T) {
	device0666(t, false)
	for who, cmd := range map[string]*exec.Cmd{
		"root": program(t, "network"), "nobody": asNobody(program(t, "network")),
	} {
		out, err := cmd.CombinedOutput()
		if status(err) != 3 {
			t.Errorf("%s ended with %v, want the error to be returned", who, err)
		}
		lines := strings.Split(string(out), "\n")
		for _, start := range []string{"error: wan: not in namespaces of its own: /dev/net/tun", "missing: /dev/net/tun"} {
			said := slices.ContainsFunc(lines, func(l string) bool {
				return strings.HasPrefix(l, start) && strings.Contains(l, "modprobe tun")
			})
			if !said {
				t.Errorf("%s: no line %q… with the mend in\n%s", who, start, out)
			}
		}
	}
}

func TestNothingIsMissingWhereIsolateWorked(t *testing.T) {
	needIsolation(t)
	if missing := Check(); len(missing) > 0 {
		t.Errorf("missing: %q", missing)
	}
}

// dieWithParent ties a process to the thread that starts it.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// burner starts a process that keeps one core busy until the test ends.
func burner(b testing.TB) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}
