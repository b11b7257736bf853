package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/command/commandtest"
	"taskledger/engine/internal/commands"
	"taskledger/integration/fronts"
	"taskledger/internal/wire"
)

// tables hold what the engine says of its commands.
type tables struct {
	commands command.Table
	largest  func(op uint64) []command.Command
	size     func(command.Command) int
}

var program = tables{
	commands: commands.Table,
	largest:  commandtest.Largest,
	size:     command.Command.Size,
}

// lacks returns which commands, largest forms and sizes the tables lack of a front.
func (t tables) lacks(f *fronts.Front) (problems []string) {
	missing := func(part fronts.Part, name, problem string) {
		problems = append(problems, fmt.Sprintf("%s: %s: %s: %s", f.Name, part, name, problem))
	}
	check := func(part fronts.Part, name string) {
		op := slices.IndexFunc(t.commands, func(empty func() command.Command) bool {
			return empty != nil && fmt.Sprintf("%T", empty()) == "*"+name
		})
		if op < 0 {
			missing(part, name, "no row in the table of commands")
			return
		}
		forms := t.largest(uint64(op))
		if len(forms) == 0 {
			missing(fronts.Largest, name, "no largest form")
		}
		for _, c := range forms {
			var w wire.Writer
			command.Encode(&w, c)
			if told, encoded := t.size(c), len(w.B); encoded > told {
				missing(fronts.Size, name, fmt.Sprintf("it tells %d bytes and has %d", told, encoded))
			}
		}
	}
	for _, name := range f.Commands {
		check(fronts.Commands, name)
	}
	for _, name := range f.Questions {
		check(fronts.Questions, name)
	}
	return problems
}

func TestTable_HasEveryCommandOfEveryFrontWithLargestFormAndSize(t *testing.T) {
	for i := range fronts.All {
		f := &fronts.All[i]
		for _, problem := range program.lacks(f) {
			t.Error(problem)
		}
	}
}

func TestTable_TellsWhatIsMissingOfAFront(t *testing.T) {
	noCommands, noForms, noSizes := program, program, program
	noCommands.commands = nil
	noForms.largest = func(uint64) []command.Command { return nil }
	noSizes.size = func(command.Command) int { return 0 }
	for i := range fronts.All {
		f := &fronts.All[i]
		for _, without := range []struct {
			part   fronts.Part
			tables tables
			names  []string
		}{
			{fronts.Commands, noCommands, f.Commands},
			{fronts.Questions, noCommands, f.Questions},
			{fronts.Largest, noForms, slices.Concat(f.Commands, f.Questions)},
			{fronts.Size, noSizes, slices.Concat(f.Commands, f.Questions)},
		} {
			problems := without.tables.lacks(f)
			for _, name := range without.names {
				prefix := fmt.Sprintf("%s: %s: %s: ", f.Name, without.part, name)
				if !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, prefix) }) {
					t.Errorf("%s of %s is taken out, and nothing is told", without.part, name)
				}
			}
		}
	}
}
