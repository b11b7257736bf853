package benchcli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench/overui"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

const viewerCommand = "viewer"

// dashboardCommand returns the command; print prints a result, and self is the command line of another one in a process of
// its own.
func dashboardCommand(
	print func(result any) error, self func(command string) ([]string, error),
) *cobra.Command {
	var cfg overui.Config
	var bounds overui.Bounds
	c := &cobra.Command{
		Use:   "dashboard",
		Short: "Measure the dashboard beside a load",
		Long: `Dashboard runs two nodes on temporary data, as bench does, and fills them with tasks that wait and tasks that have ended, and a
little of all else that pages show. A process of its own looks at the pages of one of them: each viewer at another page, which it asks
for anew as browsers do, and then at the next one, first while nothing else is done. Then windows of the load alone, in which callers
submit noop tasks and wait for each, alternate with windows of the load beside the viewers. --output json tells of each page. Settings and
audit, which do not refresh themselves and read the journal back for as long as a page may, are looked at, too, and count for the load
alone.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Finished < 1 || cfg.Waiting < 0 || cfg.InFlight < 1 || cfg.Viewers < 1 || cfg.Every < 0 || cfg.Duration <= 0 {
				const want = "want a finished task or more, waiting ones of 0 or more, one in flight, a viewer, and parts of some length"
				return &exitcode.UsageError{Problem: want}
			}
			if cfg.Viewer, err = self(viewerCommand); err != nil {
				return err
			}
			r, err := overui.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := print(r); err != nil {
				return err
			}
			return r.Within(bounds)
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.Finished, "finished", 1_000_000, "tasks that have ended")
	f.IntVar(&cfg.Waiting, "waiting", 100_000, "tasks that wait for their time")
	f.IntVar(&cfg.InFlight, "in-flight", 1000, "tasks of the load under way at any time")
	f.IntVar(&cfg.Viewers, "viewers", 10, "viewers who look at once")
	f.DurationVar(&cfg.Every, "every", 2*time.Second, "least time from one question of a viewer to its next")
	f.DurationVar(&cfg.Duration, "duration", 30*time.Second,
		"time of each part: the viewers alone, the load alone, and both")
	f.Float64Var(&bounds.Load, "min-load", 0, "fail when the load has less of its rate beside viewers; 0 = never")
	f.Float64Var(&bounds.Page, "max-page-ratio", 0,
		"fail when the p99 of pages beside the load is more times that of the idle cluster; 0 = never")
	return c
}

// benchViewer returns the command of the viewers, who look as overui.Look does.
func benchViewer(look func(context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:    viewerCommand,
		Short:  "Look at the pages that standard input asks for until it ends",
		Args:   flags.NoArguments,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := look(cmd.Context()); err != nil {
				return fmt.Errorf("look: %w", err)
			}
			return nil
		},
	}
}
