package cli

import (
	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/tokencli"
)

func (a *app) tokenCommand() *cobra.Command {
	t := &tokencli.Terminal{
		Out:       a.Out,
		JSON:      func() bool { return a.output == "json" },
		Dir:       func() string { return a.access.dir },
		Behaviors: a.completeBehaviors,
	}
	return t.Command(func(c *cobra.Command) { c.Flags().AddFlag(a.access.flags().Lookup("data")) })
}
