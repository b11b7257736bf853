package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// answerWithin bounds how long a process may take to answer an order: writes that it delays are waited for.
const answerWithin = 30 * time.Second

// What keeps a process from carrying out an order, and from ending in order.
var (
	ErrEnded   = errors.New("process has ended")
	ErrTooSlow = errors.New("did not stop in time")
)

// Process is a child: this binary in a role.
type Process struct {
	name  string
	log   string // file of its standard error
	cmd   *exec.Cmd
	hears func(Word) // called for one word at a time, until the process has ended
	ready chan Word  // closed when the process ends; holds what it said of its addresses and readiness
	ended chan struct{}
	err   error // once ended is closed

	mu      sync.Mutex
	in      io.WriteCloser
	told    bool // to end
	orders  int
	answers map[int]chan Word
}

// StartProcess runs a process in a role and a namespace. Its standard error goes to <name>.log in dir, after what an
// earlier one left there.
func StartProcess(r Role, in *Namespace, dir string, hears func(Word)) (*Process, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, r.Name+".log")
	log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is the driver's, which stops it in order
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := in.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Name, err)
	}
	p := &Process{name: r.Name, log: path, cmd: cmd, hears: hears, ready: make(chan Word, 8), ended: make(chan struct{}), in: orders,
		answers: map[int]chan Word{}}
	go p.listen(out)
	return p, nil
}

// listen hears every word and then the end of the process.
func (p *Process) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var w Word
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			continue // the last line of a process that was killed
		}
		switch {
		case w.Ready || w.Clients != "":
			p.ready <- w
		case w.Answers != 0:
			p.answered(w)
		default:
			p.hears(w)
		}
	}
	p.err = p.cmd.Wait()
	if !p.isTold() {
		p.hears(Word{Died: fmt.Sprintf("ended by itself: %v", p.err)})
	}
	close(p.ready)
	close(p.ended)
}

func (p *Process) answered(w Word) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if asked := p.answers[w.Answers]; asked != nil {
		asked <- w
		delete(p.answers, w.Answers)
	}
}

// Await returns the next word about the process's addresses or readiness.
func (p *Process) Await(ctx context.Context) (Word, error) {
	select {
	case w, ok := <-p.ready:
		if !ok {
			return w, fmt.Errorf("%s: %w: %w", p.name, ErrEnded, p.err)
		}
		return w, nil
	case <-ctx.Done():
		return Word{}, fmt.Errorf("%s is not ready: %w", p.name, context.Cause(ctx))
	}
}

// Order has an order carried out and returns the count in its answer.
func (p *Process) Order(ctx context.Context, o Order) (int64, error) {
	answer, err := p.send(&o)
	if err != nil {
		return 0, fmt.Errorf("order to %s: %w", p.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	select {
	case w := <-answer:
		if w.Err != "" {
			return 0, fmt.Errorf("order to %s: %s", p.name, w.Err)
		}
		return w.Count, nil
	case <-p.ended:
		return 0, fmt.Errorf("order to %s: %w", p.name, ErrEnded)
	case <-ctx.Done():
		return 0, fmt.Errorf("order to %s: %w", p.name, context.Cause(ctx))
	}
}

func (p *Process) send(o *Order) (answer chan Word, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orders++
	o.Number = p.orders
	answer = make(chan Word, 1)
	p.answers[o.Number] = answer
	return answer, json.NewEncoder(p.in).Encode(o)
}

// Err returns the error with which the process ended, once it has.
func (p *Process) Err() error { return p.err }

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s to %s: %w", s, p.name, err)
	}
	return nil
}

// isTold reports whether the process was told to end.
func (p *Process) isTold() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

// Kill ends the process as a crash does, and waits until it is gone and all that it said is heard.
func (p *Process) Kill() error {
	p.mu.Lock()
	p.told = true
	p.mu.Unlock()
	err := p.Signal(syscall.SIGKILL)
	<-p.ended
	return err
}

// Stop ends the process in order, and kills it when that takes too long.
func (p *Process) Stop(within time.Duration) error {
	p.mu.Lock()
	p.told = true
	_ = p.in.Close() // it may be closed
	p.mu.Unlock()
	select {
	case <-p.ended:
	case <-time.After(within):
		return errors.Join(fmt.Errorf("%s: %w, %s", p.name, ErrTooSlow, within), p.Kill())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w; its log ends with %q", p.name, p.err, LastLine(p.log))
	}
	return nil
}

// Stat reads the state of the process, one letter, and the processor time that it has used.
func (p *Process) Stat() (state string, used time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return "", 0, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name may hold anything
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return "", 0, fmt.Errorf("/proc/%d/stat: %q", p.PID(), text)
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return fields[0], time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// Pause stops the process for a while, and reports whether the kernel says that it stood still.
func (p *Process) Pause(ctx context.Context, d time.Duration) (stood bool, err error) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return false, err
	}
	Sleep(ctx, d)
	state, _, err := p.Stat()
	return state == "T", errors.Join(err, p.Signal(syscall.SIGCONT))
}

// LastLine returns how a file ends, as far as that can be read.
func LastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}
