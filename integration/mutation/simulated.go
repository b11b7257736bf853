package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"taskledger/integration/robustness/check"
	"taskledger/integration/simulation/build"
)

// simulation makes histories of the whole engine in one process.
type simulation struct{}

func (simulation) name() string { return simulated }

func (simulation) most() int { return 5000 }

func (simulation) build(ctx context.Context, dir, laid string) (program string, err error) {
	return build.Build(ctx, dir, laid)
}

func (simulation) judge(ctx context.Context, program, mutation, _ string, seed uint64) (h history, err error) {
	record, err := build.History(ctx, program, seed, variable+"="+mutation)
	switch {
	case ctx.Err() != nil:
		return h, ctx.Err()
	case err != nil:
		return ended(err)
	}
	all := check.Judge(record)
	h.judged = len(all.Problems) == 0
	for _, found := range all.Violations {
		h.note(found.Invariant, found.String())
	}
	return h, nil
}

// unmade begins the panic of a program whose history is not made in time: the dump shows what waits.
const unmade = "panic: the history is not made after"

// How a Go program exits.
const (
	exitError = 1 // by what its main decides
	exitPanic = 2
)

// ended returns what is shown by a program that made no record, by the error of the machine: its first line says how
// the program ended, and the output of the program follows. It returns an error if the harness itself failed.
func ended(err error) (h history, _ error) {
	exit, exited := errors.AsType[*exec.ExitError](err)
	_, wrote, _ := strings.Cut(err.Error(), "\n")
	switch {
	case errors.Is(err, build.ErrHangs):
		h.note(noEnd, build.ErrHangs.Error())
	case !exited:
		return h, err
	case exit.ExitCode() == exitError:
		h.note(noEnd, firstLine(wrote, ""))
	case exit.ExitCode() == exitPanic && strings.Contains(wrote, unmade):
		h.note(noEnd, firstLine(wrote, unmade))
	case exit.ExitCode() == exitPanic:
		h.note(panicked, firstLine(wrote, "panic: "))
	default: // the kernel killed it
		return h, errors.New(firstLine(err.Error(), ""))
	}
	h.judged = true
	return h, nil
}
