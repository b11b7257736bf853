package cli

import (
	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/uicli"
)

func (a *app) uiCommand() *cobra.Command {
	t := &uicli.Terminal{
		Out:  a.Out,
		JSON: func() bool { return a.output == "json" },
		Dir:  func() string { return a.access.dir },
	}
	c := t.Command()
	c.Flags().AddFlag(a.access.flags().Lookup("data"))
	return c
}
