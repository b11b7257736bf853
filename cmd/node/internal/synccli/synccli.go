// Package synccli is the command sync: it makes collections what a file says, and runs, shows and steers them.
package synccli

import "github.com/spf13/cobra"

// Command returns the command, with its subcommands.
func (t *Terminal) Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "sync",
		Short: "Keep collections up to date, as a file of sources says",
		Long: `Sync makes the collections of the cluster those of a YAML file, and runs, shows and steers them. A collection
is a schedule of behavior collection, SOURCE_COLLECTION; its runs are tasks. docs/sync.md describes the file.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(t.apply(), t.diff(), t.run(), t.list(), t.logs(), t.steer(pause), t.steer(resume))
	return c
}
