//go:build linux

package wan

import (
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The switch is a process of its own, the program run once more. In the caller's
// process the thread that moves packets would wait for the caller's goroutines:
// the Go scheduler knows no priorities, so a busy load generator made packets
// tens of milliseconds late. It is controlled through a socket that it inherits,
// and gets the open devices the same way.
const (
	stageSwitch = "switch"
	controlFD   = 3
	firstTUN    = 4
	// readyVariable holds the pid of the process in which Isolate has returned,
	// where alone the program can be run again as a switch.
	readyVariable = "SUBAK_WAN_INSIDE"
	service       = "Switch"
	startMax      = time.Minute
)

// startSwitch runs the switch and gives it the devices of the hosts.
func startSwitch(cfg Config, hosts []*Host) (*switchProcess, error) {
	if os.Getenv(readyVariable) != strconv.Itoa(os.Getpid()) {
		return nil, fmt.Errorf("%w: Isolate must have returned nil before New", ErrNotIsolated)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("wan: control socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer ours.Close()
	defer theirs.Close()
	files := []*os.File{theirs}
	for _, h := range hosts {
		tun := h.releaseTUN()
		defer tun.Close() // the switch alone keeps it
		files = append(files, tun)
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("wan: control socket: %w", err)
	}
	// The same arguments, for a program that reads them before it calls Isolate.
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stageVariable+"="+stageSwitch)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = files
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("wan: start the switch: %w", err)
	}
	p := &switchProcess{cmd: cmd, client: rpc.NewClient(conn), ended: make(chan struct{})}
	go func() {
		p.status = cmd.Wait()
		close(p.ended)
	}()
	if err := p.begin(cfg); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// begin makes the switch forward packets. A program that does not come to Isolate
// never answers.
func (p *switchProcess) begin(cfg Config) error {
	started := make(chan error, 1)
	go func() { started <- p.call("Start", cfg, new(int)) }()
	select {
	case err := <-started:
		return err
	case <-time.After(startMax):
		return fmt.Errorf("wan: the switch has not answered within %s: does the program call Isolate first?", startMax)
	}
}

// switchProcess is the switch as its parent sees it.
type switchProcess struct {
	cmd    *exec.Cmd
	client *rpc.Client
	ended  chan struct{} // closed when the process has ended
	status error         // how; to be read after ended
}

func (p *switchProcess) call(method string, args, reply any) error {
	if err := p.client.Call(service+"."+method, args, reply); err != nil {
		return fmt.Errorf("wan: the switch: %w", err)
	}
	return nil
}

// close ends the switch. It is an error if it had ended before.
func (p *switchProcess) close() error {
	select {
	case <-p.ended:
		_ = p.client.Close()
		return fmt.Errorf("wan: the switch had ended: %w", p.status)
	default:
	}
	_ = p.client.Close() // it ends by itself then; the kill is for one that hangs
	err := p.cmd.Process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// beSwitch is the life of the switch process: it ends with its control socket.
func beSwitch() int {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM) // the caller decides
	runtime.GOMAXPROCS(2)                                 // one thread moves packets, one answers
	raise()
	f := os.NewFile(controlFD, "control")
	unix.CloseOnExec(controlFD)
	conn, err := net.FileConn(f)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wan: the switch: control socket:", err)
		return 125
	}
	f.Close()
	server := rpc.NewServer()
	if err := server.RegisterName(service, &control{}); err != nil {
		fmt.Fprintln(os.Stderr, "wan: the switch:", err)
		return 125
	}
	server.ServeConn(conn)
	return 0
}

// control is what the switch process answers to, by net/rpc.
type control struct {
	mu   sync.Mutex // guards core
	core *core
}

var errOrder = errors.New("started twice, or asked before it was started")

// Start makes the switch forward packets. No value of cfg is left to a default.
func (s *control) Start(cfg Config, _ *int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.core != nil {
		return errOrder
	}
	s.core = newCore(len(cfg.Hosts), cfg.MTU, cfg.InFlight, cfg.Seed)
	if len(cfg.NAT) > 0 {
		s.core.nat = newNAT(cfg.NAT)
	}
	var tuns []int
	for i := range cfg.Hosts {
		fd := firstTUN + i
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return fmt.Errorf("device %d: %w", i, err)
		}
		tuns = append(tuns, fd)
	}
	go func() {
		runtime.LockOSThread()
		err := run(s.core, tuns)
		fmt.Fprintln(os.Stderr, "wan: the switch:", err)
		os.Exit(125)
	}()
	return nil
}

// Set puts rules in force.
func (s *control) Set(rules []Rule, _ *int) error {
	c, err := s.started()
	if err != nil {
		return err
	}
	return c.replace(rules)
}

// Stats reads the counts.
func (s *control) Stats(_ int, stats *Stats) error {
	c, err := s.started()
	if err != nil {
		return err
	}
	*stats = c.snapshot()
	return nil
}

func (s *control) started() (*core, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.core == nil {
		return nil, errOrder
	}
	return s.core, nil
}

// raise lets every thread of this process, and those still to come, run as soon
// as it has something to do: real-time priority, which only root may have. The
// kernel leaves at least 5 % of the machine to others (sched_rt_runtime_us).
func raise() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // of this thread, and those it makes
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetAttr(id, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 10}, 0)
		}
	}
}
