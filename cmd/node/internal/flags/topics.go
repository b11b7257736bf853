package flags

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
)

// RefuseTopics makes help and completion of what there is not wrong usage: they would print their own help as if it
// were asked for, which a shell that reads a completion would run.
func RefuseTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					const say = "there is no command %q; all are listed by: %s --help"
					return fmt.Errorf(say, strings.Join(args, " "), root.CommandPath())
				}
				return nil
			}
		case "completion":
			c.RunE = func(c *cobra.Command, args []string) error {
				if len(args) > 0 {
					return &exitcode.UsageError{Problem: fmt.Sprintf("completion of %q: want bash, zsh, fish or powershell", args[0])}
				}
				return c.Help()
			}
			c.Args = cobra.ArbitraryArgs
		}
	}
}
