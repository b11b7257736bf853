// Package synccli is the command sync: it makes collections what a file says, and runs, shows and steers them.
package synccli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

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
	for _, sub := range c.Commands() {
		if strings.Contains(sub.Use, "SOURCE") {
			sub.ValidArgsFunction = t.complete
		}
	}
	return c
}

// complete completes first a source and then one of its collections.
func (t *Terminal) complete(c *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	if len(args) >= strings.Count(c.Use, " ") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ids, directive := t.Complete(c, args, part)
	var words []string
	for _, id := range ids {
		source, name, _ := strings.Cut(id, "_") // a source has no underscore
		switch {
		case len(args) == 1 && args[0] == source:
			words = append(words, name)
		case len(args) == 0 && !slices.Contains(words, source):
			words = append(words, source)
		}
	}
	return words, directive
}
