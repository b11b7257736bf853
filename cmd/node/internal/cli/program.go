package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
)

// Program is the process as its user sees it.
type Program struct {
	Name string // how it was started, and how the commands that it prints begin
	Args []string
	In   io.Reader
	Out  io.Writer // what was asked for, and nothing else
	Err  io.Writer // everything else
}

// cachedRun matches the directory in which the go command keeps what `go run` has built.
var cachedRun = regexp.MustCompile(`^[0-9a-f]{64}-d$`)

// StartedAs returns what a user types to start this program again: `go run ./cmd/node` if that is how it was started.
func StartedAs(executable, arg0 string) string {
	dir := filepath.Dir(executable)
	fresh := filepath.Base(dir) == "exe" && strings.Contains(dir, string(filepath.Separator)+"go-build")
	if fresh || cachedRun.MatchString(filepath.Base(dir)) {
		return "go run ./cmd/node"
	}
	return quote(arg0)
}

// command returns a line that does what the arguments say when it is typed into a shell.
func (p *Program) command(args ...string) string {
	line := p.Name
	for _, arg := range args {
		line += " " + quote(arg)
	}
	return line
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

func quote(arg string) string {
	if plain.MatchString(arg) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// example is a command line and what it is for.
type example struct {
	what string
	args []string
}

func (p *Program) examples(all ...example) string {
	var b strings.Builder
	for i, e := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "  # %s\n  %s", e.what, p.command(e.args...))
	}
	return b.String()
}
