package builtin

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// allowance is a program that the operator of a node allows.
type allowance struct {
	path  string
	fixed bool     // the submitter gives arguments only in place of takesArgs
	args  []string // the fixed arguments
	err   error    // the program cannot be run although it is allowed
}

// takesArgs is the place of the submitter's arguments among fixed ones.
const takesArgs = "{}"

// CheckAllow returns why an entry of ExecOptions.Allow cannot be used, nil if it can.
func CheckAllow(entry string) error {
	_, a := allow(entry)
	return a.err
}

// allow reads an entry of ExecOptions.Allow.
func allow(entry string) (name string, a allowance) {
	program := entry
	if before, command, given := strings.Cut(entry, "="); given && !strings.ContainsRune(before, filepath.Separator) {
		name, program = before, ""
		a.fixed = true
		if fields := strings.Fields(command); len(fields) > 0 {
			program, a.args = fields[0], fields[1:]
		}
		places := 0
		for _, arg := range a.args {
			if arg == takesArgs {
				places++
			}
		}
		if name == "" || program == "" || places > 1 {
			a.err = fmt.Errorf("want name=program arg ..., with one %s at most", takesArgs)
			return name, a
		}
	} else {
		name = entry
	}
	if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
		a.err = errors.New("want a name or an absolute path")
		return name, a
	}
	a.path, a.err = exec.LookPath(program)
	return name, a
}

// with returns the arguments of a call.
func (a *allowance) with(given []string) ([]string, error) {
	if !a.fixed {
		return given, nil
	}
	at := slices.Index(a.args, takesArgs)
	if at < 0 {
		if len(given) > 0 {
			return nil, errors.New("its arguments are fixed on this node: want none")
		}
		return a.args, nil
	}
	return slices.Concat(a.args[:at], given, a.args[at+1:]), nil
}
