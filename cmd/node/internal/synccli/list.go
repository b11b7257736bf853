package synccli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/collections"
	"taskledger/collections/taskjson"
	"taskledger/events"
	"taskledger/schedule"
)

const (
	pageSchedules = 100 // of one question
	asksAtOnce    = 8
)

// listed is a collection as JSON shows it.
type listed struct {
	ID         string          `json:"id"`
	Source     string          `json:"source"`
	Collection string          `json:"collection"`
	Driver     string          `json:"driver"`
	Schedule   string          `json:"schedule"` // a cron expression; "" = it runs when it is asked to
	Timezone   string          `json:"timezone"`
	Paused     bool            `json:"paused"`
	Last       string          `json:"last,omitempty"`   // id of the latest run that is kept
	Status     taskjson.Status `json:"status,omitempty"` // of that run
	Next       events.Millis   `json:"next,omitempty"`   // tick; 0 = none comes, or the collection is paused
}

func (t *Terminal) list() *cobra.Command {
	c := &cobra.Command{
		Use:   "list [SOURCE]",
		Short: "List collections with their times and the status of their latest runs",
		Args:  flags.Arguments,
	}
	return t.Ask(c, never, func(ctx context.Context, client *Client, args []string) error {
		filter, source := schedule.Filter{Behavior: collections.Behavior}, ""
		if len(args) > 0 {
			source = args[0]
			filter.Prefix = source + "_"
		}
		p := t.Print("ID", "DRIVER", "SCHEDULE", "ZONE", "PAUSED", "LAST RUN", "NEXT")
		found := false
		for after, more := "", true; more; {
			some, others, err := client.Schedules.List(ctx, filter, after, pageSchedules)
			if err != nil {
				return err
			}
			var page []listed
			for i := range some {
				s := &some[i]
				after = s.Name
				if of, is := collectionOf(s); is && (source == "" || of.Source == source) {
					page = append(page, listedOf(&of, s))
				}
			}
			if err := lastRuns(ctx, client, page); err != nil {
				return err
			}
			found = found || len(page) > 0
			if err := rows(p, page); err != nil {
				return err
			}
			more = others && len(some) > 0
		}
		if !found && source != "" {
			return fmt.Errorf("source %.64q has no collections: %w", source, schedule.ErrNotFound)
		}
		return p.Flush()
	})
}

func listedOf(of *collections.Collection, s *schedule.Schedule) listed {
	next := s.Next
	if s.Paused != nil { // ticks that fall into the pause have no runs
		next = 0
	}
	return listed{
		ID:         s.Name,
		Source:     of.Source,
		Collection: of.Name,
		Driver:     of.Driver.Driver,
		Schedule:   s.Definition.Cron,
		Timezone:   s.Definition.Timezone,
		Paused:     s.Paused != nil,
		Next:       next,
	}
}

// lastRuns looks up the latest run of each collection.
func lastRuns(ctx context.Context, client *Client, page []listed) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(asksAtOnce)
	for i := range page {
		g.Go(func() error {
			run, found, err := latest(ctx, client, page[i].ID)
			if err == nil && found {
				page[i].Last = shownID(run.ID)
				page[i].Status = taskjson.StatusOf(run.Status, run.Substatus)
			}
			return err
		})
	}
	return g.Wait()
}

func rows(p *output.Printer, page []listed) (err error) {
	for i := range page {
		c := &page[i]
		paused := "-"
		if c.Paused {
			paused = "paused"
		}
		err = errors.Join(err, p.Row(c, c.ID, c.Driver, cmp.Or(c.Schedule, "-"), c.Timezone, paused,
			cmp.Or(string(c.Status), "-"), output.Time(c.Next)))
	}
	return err
}
