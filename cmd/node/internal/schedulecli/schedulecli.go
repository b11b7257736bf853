// Package schedulecli is the command schedule: it sets, shows and steers schedules, and tells when expressions fire.
package schedulecli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/output"
	"taskledger/schedule"
)

// Client asks a cluster.
type Client interface {
	Schedules() operations.Schedules
	Backfills() operations.Backfills
}

// Terminal connects the commands to the command line.
type Terminal struct {
	In    io.Reader
	Err   io.Writer
	Print func(columns ...string) *output.Printer
	Now   func() time.Time
	// Complete completes the names of schedules, and Behaviors those of behaviors.
	Complete, Behaviors cobra.CompletionFunc
	// Ask makes a command one that asks a cluster.
	Ask func(c *cobra.Command, run func(ctx context.Context, client Client, args []string) error) *cobra.Command
}

// Command returns the command, with its subcommands.
func (t *Terminal) Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Give behaviors runs at the times of cron expressions",
		Long: `Schedule sets, shows and steers schedules. A schedule gives a behavior runs at the times that a cron expression
names, and goes on whatever node lives. Its runs are the tasks NAME/tick:MS, NAME/run:... and NAME/fill:MS, which list
--affinity-prefix NAME lists; history NAME/schedule: tells what became of each tick.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(t.set(), t.get(), t.list(), t.next(), t.run(), t.backfill())
	for _, v := range verbs {
		c.AddCommand(t.steer(v))
	}
	for _, sub := range c.Commands() {
		t.complete(sub)
	}
	return c
}

// complete has a shell complete the name of a schedule, and the flags of a command.
func (t *Terminal) complete(c *cobra.Command) {
	if strings.Contains(c.Use, " NAME") {
		c.ValidArgsFunction = func(c *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return t.Complete(c, args, part)
		}
	}
	fixed := func(all ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, values := range map[string]cobra.CompletionFunc{
		"behavior": t.Behaviors,
		"overlap":  fixed(string(schedule.Forbid), string(schedule.Allow), string(schedule.Replace)),
		"misfire":  fixed(string(schedule.Once), string(schedule.Skip), string(schedule.All)),
		"timezone": completeZones,
	} {
		if c.Flags().Lookup(flag) == nil {
			continue
		}
		if err := c.RegisterFlagCompletionFunc(flag, values); err != nil {
			panic(err) // the flag is there
		}
	}
}
