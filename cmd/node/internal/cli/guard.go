package cli

import (
	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/guard"
)

// guardCommand is for a node to start, not for people. Settings are none of its concern.
func (a *app) guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:               guard.Command,
		Short:             "End the programs of a node that was killed; serve --exec-allow starts it",
		Args:              flags.NoArguments,
		Hidden:            true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		Run:               func(*cobra.Command, []string) { guard.Serve(a.In) },
	}
}
