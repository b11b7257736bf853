package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/integration/fronts"
)

// lacks returns which commands and exit codes the program lacks of a front.
func lacks(f *fronts.Front, commands []*cobra.Command, exit func(error) int) (problems []string) {
	for _, name := range f.CommandLine {
		if !slices.ContainsFunc(commands, func(c *cobra.Command) bool { return c.Name() == name }) {
			problems = append(problems, fmt.Sprintf("%s: %s: no command %s", f.Name, fronts.CommandLine, name))
		}
	}
	if f.Refusal != nil && exit(f.Refusal) == exitcode.Failed {
		problems = append(problems, fmt.Sprintf("%s: %s: none for %T", f.Name, fronts.ExitCode, f.Refusal))
	}
	return problems
}

func TestFronts_HaveTheirCommandsAndExitCodes(t *testing.T) {
	t.Parallel()
	commands := (&app{}).root().Commands()
	failed := func(error) int { return exitcode.Failed }
	for i := range fronts.All {
		f := &fronts.All[i]
		for _, problem := range lacks(f, commands, exitcode.Of) {
			t.Error(problem)
		}
		without := strings.Join(lacks(f, nil, failed), "\n")
		for _, name := range f.CommandLine {
			if !strings.Contains(without, fmt.Sprintf("%s: %s: no command %s", f.Name, fronts.CommandLine, name)) {
				t.Errorf("%s: %s is taken out, and nothing is told", f.Name, name)
			}
		}
		if f.Refusal != nil && !strings.Contains(without, fmt.Sprintf("%s: %s: ", f.Name, fronts.ExitCode)) {
			t.Errorf("%s: the exit code is taken out, and nothing is told", f.Name)
		}
	}
}
