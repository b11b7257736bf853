package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"taskledger/integration/robustness/check"
	"taskledger/integration/simulation/build"
)

// simulation is the harness that simulates.
type simulation struct{}

func (simulation) most() int { return 5000 }

func (simulation) build(ctx context.Context, dir, overlay string) (program string, err error) {
	return build.Build(ctx, dir, overlay)
}

func (simulation) judge(ctx context.Context, program, _ string, seed uint64) (v verdict, err error) {
	h, err := build.History(ctx, program, seed)
	switch {
	case ctx.Err() != nil:
		return v, ctx.Err()
	case err != nil:
		return ended(err)
	}
	all := check.Judge(h)
	v.judged = len(all.Problems) == 0
	for _, found := range all.Violations {
		v.note(found.Invariant, found.String())
	}
	return v, nil
}

// unmade begins the panic of a program whose history is not made in time: the dump shows what waits.
const unmade = "panic: the history is not made after"

// How a Go program exits.
const (
	exitError = 1 // by what its main decides
	exitPanic = 2
)

// ended returns the verdict on a program that made no history, by the error of the machine: its first line says how the
// program ended, and the output of the program follows. It returns an error if the harness itself failed.
func ended(err error) (v verdict, _ error) {
	exit, exited := errors.AsType[*exec.ExitError](err)
	_, wrote, _ := strings.Cut(err.Error(), "\n")
	switch {
	case errors.Is(err, build.ErrHangs):
		v.note(noEnd, build.ErrHangs.Error())
	case !exited:
		return v, err
	case exit.ExitCode() == exitError:
		v.note(noEnd, firstLine(wrote, ""))
	case exit.ExitCode() == exitPanic && strings.Contains(wrote, unmade):
		v.note(noEnd, firstLine(wrote, unmade))
	case exit.ExitCode() == exitPanic:
		v.note(panicked, firstLine(wrote, "panic: "))
	default: // the kernel killed it
		return v, errors.New(firstLine(err.Error(), ""))
	}
	v.judged = true
	return v, nil
}
