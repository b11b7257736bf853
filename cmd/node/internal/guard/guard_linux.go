package guard

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// takesLine bounds the time in which a process makes room for a line in its pipe, which holds thousands.
	takesLine = time.Second
	// takesEnd bounds the time in which a process ends once its pipe has.
	takesEnd = 5 * time.Second
	// restart is the least time between the starts of two processes.
	restart = time.Second
)

// Guard keeps one process that ends process groups when this one has ended, in whatever way.
type Guard struct {
	log     *slog.Logger
	closing chan struct{}
	closed  chan struct{}

	mu     sync.Mutex
	groups map[int]struct{} // what is held
	cmd    *exec.Cmd        // the process; it may have ended
	pipe   *os.File         // to the process; nil when it is not to be told any more
}

// Start starts the process. Should it end before Close, another one is started and told of all groups that are held.
func Start(log *slog.Logger) (*Guard, error) {
	g := &Guard{
		log:     log,
		closing: make(chan struct{}),
		closed:  make(chan struct{}),
		groups:  map[int]struct{}{},
	}
	if err := g.start(); err != nil {
		return nil, fmt.Errorf("start the guard of programs: %w", err)
	}
	go g.keep()
	return g, nil
}

// start starts a process and sends it the groups that are held.
func (g *Guard) start() error {
	read, write, err := os.Pipe() // closed in every program that is started, but for the end that is given here
	if err != nil {
		return err
	}
	defer read.Close()
	// The file that this process was started from may have been replaced, and its user may press ctrl-C: so the kernel
	// names the file, and the session is another one.
	cmd := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{"taskledger", Command},
		Env:         []string{"GOMAXPROCS=1"},
		Dir:         "/",
		Stdin:       read,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		write.Close()
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hangUp()
	g.cmd, g.pipe = cmd, write
	select {
	case <-g.closing:
		g.hangUp()
	default:
	}
	for group := range g.groups {
		g.tell('+', group)
	}
	return nil
}

// keep starts the process again whenever it ends, until the guard is closed.
func (g *Guard) keep() {
	defer close(g.closed)
	started := time.Now()
	ended := g.cmd.Wait() // nobody else sets cmd by now
	for !g.over(started) {
		started = time.Now()
		if err := g.start(); err != nil {
			g.log.Error("programs of tasks would outlive this node if it were killed: their guard cannot be started again",
				"ended", ended, "error", err)
			continue
		}
		g.log.Warn("the guard of programs had ended and was started again", "ended", ended)
		ended = g.cmd.Wait()
	}
}

// over waits until another process may be started, and reports whether none is to be.
func (g *Guard) over(started time.Time) bool {
	select {
	case <-g.closing:
	case <-time.After(time.Until(started.Add(restart))):
	}
	select {
	case <-g.closing:
		return true
	default:
		return false
	}
}

// Hold has a process group killed if this process ends before release is called. The caller releases the group before
// it reaps the process whose number the group bears, since the number may be another group's from then on.
func (g *Guard) Hold(group int) (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[group] = struct{}{}
	g.tell('+', group)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.groups, group)
		g.tell('-', group)
	}
}

// tell writes a line to the process. If the process does not take it, it is killed, so that the next one is sent
// everything. It is killed before its pipe is closed; otherwise it would kill the groups that it holds.
func (g *Guard) tell(sign byte, group int) {
	if g.pipe == nil {
		return
	}
	err := g.pipe.SetWriteDeadline(time.Now().Add(takesLine))
	if err == nil {
		_, err = fmt.Fprintf(g.pipe, "%c%d\n", sign, group)
	}
	if err != nil {
		_ = g.cmd.Process.Kill() // it may have ended
		g.hangUp()
	}
}

func (g *Guard) hangUp() {
	if g.pipe != nil {
		g.pipe.Close()
		g.pipe = nil
	}
}

// Close ends the process, which kills the groups that are held still.
func (g *Guard) Close() {
	g.mu.Lock()
	close(g.closing)
	g.hangUp()
	g.mu.Unlock()
	select {
	case <-g.closed:
	case <-time.After(takesEnd):
		g.mu.Lock()
		_ = g.cmd.Process.Kill() // it may have ended
		g.mu.Unlock()
		<-g.closed
	}
}

// Serve is all that the process does: it reads lines until they end, and kills the groups that it was told of. Signals
// that stop a node are ignored, since whoever stops a unit or a container may send them to all of its processes.
func Serve(lines io.Reader) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	closeInherited()
	groups := map[int]struct{}{}
	for in := bufio.NewScanner(lines); in.Scan(); {
		var (
			sign  rune
			group int
		)
		_, err := fmt.Sscanf(in.Text(), "%c%d", &sign, &group)
		switch {
		case err != nil || group <= 1: // 0 and 1 would mean every process that there is
		case sign == '+':
			groups[group] = struct{}{}
		case sign == '-':
			delete(groups, group)
		}
	}
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGKILL) // an error means that nothing of it is left
	}
}

// closeInherited closes files that whoever started the node left open in it and so in every program. What Go opens is
// not among them: it is closed on exec.
func closeInherited() {
	files, _ := os.ReadDir("/proc/self/fd") // without it they stay open
	for _, file := range files {
		fd, err := strconv.Atoi(file.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
