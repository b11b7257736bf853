package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/flags"
	"taskledger/internal/version"
)

func (a *app) versionCommand() *cobra.Command {
	modules := false
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program, and the commit it was built from",
		Args:  flags.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			is := version.Of()
			if a.output == "json" {
				return json.NewEncoder(a.Out).Encode(is)
			}
			commit := is.Commit
			if commit == "" {
				commit = "not known"
			}
			fmt.Fprintf(a.Out, "taskledger %s, commit %s, %s\n", is.Version, commit, is.Go)
			if modules {
				for _, m := range is.Modules {
					fmt.Fprintf(a.Out, "%s %s\n", m.Path, m.Version)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&modules, "modules", false, "also print the modules it is made of; JSON has them always")
	return c
}
