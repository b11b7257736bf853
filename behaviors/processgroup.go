package behaviors

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// drainTime is how long output is read after the group has ended: only a process that left it can still hold a pipe.
const drainTime = time.Second

// runGroup runs cmd in a process group of its own, its outputs going to out, and returns when nothing of the group is
// left. When ctx ends first it reports so, having asked the group to end and killed it after the grace. The error is an
// *exec.ExitError when the program ran.
func runGroup(ctx context.Context, cmd *exec.Cmd, out *output, grace time.Duration) (ended bool, err error) {
	if ctx.Err() != nil {
		return true, nil
	}
	stdout, err := openStream(&out.stdout)
	if err != nil {
		return false, err
	}
	defer stdout.close()
	stderr, err := openStream(&out.stderr)
	if err != nil {
		return false, err
	}
	defer stderr.close()

	cmd.Stdout, cmd.Stderr = stdout.write, stderr.write
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return false, err
	}
	stdout.start()
	stderr.start()
	ended, err = waitGroup(ctx, cmd, grace)
	until := time.Now().Add(drainTime)
	stdout.finish(until)
	stderr.finish(until)
	return ended, err
}

// waitGroup waits for the program, then kills what is left of its group. The program has been reaped by then, but the
// kernel gives its number to nobody while it names a group; an empty group's would have to come round within the instant.
func waitGroup(ctx context.Context, cmd *exec.Cmd, grace time.Duration) (ended bool, err error) {
	defer killGroup(cmd)
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case err := <-exited:
		return false, err
	case <-ctx.Done():
	}
	terminateGroup(cmd)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err = <-exited:
	case <-timer.C:
		killGroup(cmd)
		err = <-exited
	}
	return true, err
}

// stream copies what is written to a pipe. The pipe is ours rather than os/exec's, whose Wait would wait for every
// process that holds it.
type stream struct {
	to          io.Writer
	read, write *os.File
	copied      chan struct{}
}

func openStream(to io.Writer) (*stream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	return &stream{to: to, read: read, write: write, copied: make(chan struct{})}, nil
}

// start copies until every process has closed the pipe; the program has its own end of it by now.
func (s *stream) start() {
	s.write.Close()
	go func() {
		defer close(s.copied)
		_, _ = io.Copy(s.to, s.read) // a pipe fails only when finish ends it
	}()
}

// finish returns when the copying is over, at the given time if need be; s.to may be read then.
func (s *stream) finish(until time.Time) {
	if err := s.read.SetReadDeadline(until); err != nil {
		s.read.Close()
	}
	<-s.copied
}

func (s *stream) close() {
	s.read.Close()
	s.write.Close()
}
