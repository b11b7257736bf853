package cli

import (
	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
)

func (a *app) benchCommand() *cobra.Command {
	return bench.Command(a.Out, func() bool { return a.output == "json" })
}
