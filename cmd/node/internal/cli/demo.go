package cli

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/demo"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Checksum a directory on three nodes, kill one of them, and check everything",
		Long: `Demo runs three nodes on etcd and NATS in this process, with temporary data. A task computes the
checksum of every regular file below DIR, by default the working directory, without .git and data directories. When
half of them are done one node is killed without warning, with attempts under way: the others notice within the
session's 3 seconds and run those again. Then every checksum is compared with one computed directly, and the whole
journal is verified. Exit code 0 means that all of it is right; files that changed or vanished meanwhile are named and
do not count.`,
		Args: flags.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if _, err := os.Stat(dir); err != nil {
				return &exitcode.UsageError{Problem: "demo: " + err.Error()}
			}
			return demo.Run(cmd.Context(), demo.Config{Dir: dir, Out: a.Out, Err: a.Err, Log: slog.New(slog.DiscardHandler)})
		},
	}
}
