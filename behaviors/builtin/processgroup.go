package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	// drainTime bounds how long output is read after the group has ended: only a process that left it can still hold a
	// pipe.
	drainTime = time.Second
	// pipeBytes bounds what is read beyond that time of what is in the pipe by then, and restTime for how long: the log
	// of the attempt may have taken the time. A pipe on Linux has this size.
	pipeBytes = 64 << 10
	restTime  = 100 * time.Millisecond
)

// runGroup runs cmd in a process group of its own, its outputs going to out, and returns when nothing of the group is
// left. When ctx ends first it reports so, having asked the group to end and killed it after the grace. The error is an
// *exec.ExitError when the program ran. hold may be nil.
func runGroup(
	ctx context.Context, cmd *exec.Cmd, out *output, grace time.Duration, hold func(group int) (release func()),
) (ended bool, err error) {
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
	release := func() {}
	if hold != nil {
		release = hold(cmd.Process.Pid)
	}
	stdout.start()
	stderr.start()
	ended, err = waitGroup(ctx, cmd, grace, release)
	until := time.Now().Add(drainTime)
	stdout.finish(until)
	stderr.finish(until)
	return ended, err
}

// waitGroup waits for the program, kills what is left of its group, releases the group and reaps the program. In this
// order nobody is told of a group, by a signal or by release, whose number the kernel may have given to another: it
// gives it to nobody before the program is reaped.
func waitGroup(ctx context.Context, cmd *exec.Cmd, grace time.Duration, release func()) (ended bool, err error) {
	exited := make(chan error, 1)
	go func() { exited <- awaitExit(cmd) }()
	select {
	case err = <-exited:
	case <-ctx.Done():
		ended = true
		terminateGroup(cmd)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case err = <-exited:
		case <-timer.C:
			killGroup(cmd)
			err = <-exited
		}
	}
	killGroup(cmd)
	release()
	return ended, reap(cmd, err)
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
	return &stream{
		to:     to,
		read:   read,
		write:  write,
		copied: make(chan struct{}),
	}, nil
}

// start copies until every process has closed the pipe; the program has its own end of it by now.
func (s *stream) start() {
	s.write.Close()
	go func() {
		defer close(s.copied)
		_, err := io.Copy(s.to, s.read) // a pipe fails only when finish ends it
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.copyRest()
		}
	}()
}

// copyRest copies what is in the pipe when its time is over.
func (s *stream) copyRest() {
	if err := s.read.SetReadDeadline(time.Now().Add(restTime)); err != nil {
		return
	}
	rest := make([]byte, pipeBytes)
	n, _ := io.ReadFull(s.read, rest) // it fails where less is there
	_, _ = s.to.Write(rest[:n])
}

// finish returns when the copying is over; s.to may be read then. It waits until the given time for what is not in
// the pipe, and else no longer than s.to takes.
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
