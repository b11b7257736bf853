package cli

import (
	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/benchcli"
)

func (a *app) benchCommand() *cobra.Command {
	c := (&benchcli.Terminal{In: a.In, Out: a.Out, Err: a.Err, JSON: func() bool { return a.output == "json" }}).Command()
	return c
}
