package schedulecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/schedule"
)

// maxNext bounds the ticks that next shows.
const maxNext = 1000

func (t *Terminal) next() *cobra.Command {
	var zone string
	var n int
	c := &cobra.Command{
		Use:   "next EXPR",
		Short: "Say when a cron expression fires, without a cluster",
		Args:  flags.Arguments,
	}
	c.Flags().StringVar(&zone, "timezone", schedule.DefaultZone, "`zone` of the IANA database, such as Europe/Berlin")
	c.Flags().IntVar(&n, "limit", 5, "ticks to show, 1 to 1000")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if n < 1 || n > maxNext {
			return &exitcode.UsageError{Problem: fmt.Sprintf("--limit %d: want 1 to %d", n, maxNext)}
		}
		if args[0] == "" {
			return &exitcode.UsageError{Problem: "EXPR is empty: want a cron expression"}
		}
		v, err := previewOf(&events.SchedulePlan{Cron: args[0], Zone: zone}, events.MillisOf(t.Now()), n)
		if err != nil {
			return err
		}
		p := t.Print()
		if p.IsJSON() {
			err = p.Row(v)
		} else {
			err = v.rows(p)
		}
		v.warn(t.Err)
		return errors.Join(err, p.Flush())
	}
	return c
}

func (t *Terminal) get() *cobra.Command {
	c := &cobra.Command{Use: "get NAME", Short: "Show a schedule", Args: flags.Arguments}
	return t.Ask(c, func(ctx context.Context, client Client, args []string) error {
		s, err := client.Schedules().Get(ctx, args[0])
		if err != nil {
			return err
		}
		p := t.Print()
		if p.IsJSON() {
			err = p.Row(s)
		} else {
			err = table(p, append(definitionRows(&s.Definition), stateRows(&s)...))
		}
		return errors.Join(err, p.Flush())
	})
}

// definitionRows returns the rows of a table about a definition that has every default filled in.
func definitionRows(d *schedule.Definition) [][]any {
	rows := [][]any{
		{"behavior", d.Behavior}, {"cron", cmp.Or(d.Cron, "-")}, {"fires", describe(d.Cron)}, {"timezone", d.Timezone},
		{"overlap", d.Overlap}, {"misfire", d.Misfire}, {"grace", max(d.Grace, 0)}, {"jitter", d.Jitter},
		{"start", output.Time(events.MillisOf(d.Start))}, {"end", output.Time(events.MillisOf(d.End))},
		{"priority", d.Priority}, {"attempts", d.Attempts}, {"attempt timeout", orNone(d.Timeout)}, {"keep", max(d.Keep, 0)},
		{"pause on failure", d.PauseOnFailure},
	}
	if len(d.Params) > 0 {
		rows = append(rows, []any{"params", string(d.Params)})
	}
	return rows
}

// orNone shows a duration of which 0 is none.
func orNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

// stateRows returns the rows of a table about what became of a schedule.
func stateRows(s *schedule.Schedule) [][]any {
	next := []any{"next", nextOf(s)}
	ticks, err := schedule.TicksOf(&events.SchedulePlan{Cron: s.Definition.Cron, Zone: s.Definition.Timezone})
	if err == nil && s.Next != 0 && s.Paused == nil { // other machines may know more time zones
		next = []any{"next", tickAt(ticks, s.Next)}
	}
	rows := [][]any{
		{"state", state(s)}, next, {"last", output.Time(s.Last)}, {"active", s.Active}, {"kept", s.Kept},
		{"version", s.Version}, {"set by", cmp.Or(s.SetBy, "-")}, {"set at", output.Time(s.SetAt)},
	}
	if p := s.Paused; p != nil {
		rows = append(rows, []any{"paused by", cmp.Or(p.By, "-")}, []any{"paused since", output.Time(p.Since)},
			[]any{"reason", cmp.Or(p.Reason, "-")})
		if p.Failed != "" {
			rows = append(rows, []any{"failed run", p.Failed})
		}
	}
	if f := s.Fill; f != nil {
		rows = append(rows, []any{"backfill", fmt.Sprintf("%s to %s", output.Time(f.From), output.Time(f.To))},
			[]any{"backfill by", cmp.Or(f.By, "-")})
	}
	if s.GaveUp != 0 {
		rows = append(rows, []any{"gave up runs at", output.Time(s.GaveUp)})
	}
	if s.Why != "" {
		rows = append(rows, []any{"why", s.Why})
	}
	return rows
}

// nextOf shows the next tick. That of a paused schedule may be long past, and has no run.
func nextOf(s *schedule.Schedule) string {
	if s.Paused != nil {
		return output.Time(0)
	}
	return output.Time(s.Next)
}

// state returns few words for a schedule: docs/schedules.md lists them.
func state(s *schedule.Schedule) string {
	is := "on"
	switch {
	case s.Paused != nil && s.Paused.Failed != "":
		is = "failed"
	case s.Paused != nil:
		is = "paused"
	case s.Why != "":
		is = "held up"
	case s.Definition.Cron == "":
		is = "by hand"
	case s.Next == 0:
		is = "ended"
	}
	if s.Fill != nil {
		is += fmt.Sprintf(", backfill %d/%d", s.Fill.Ticks-s.Fill.Left, s.Fill.Ticks)
	}
	return is
}

func (t *Terminal) list() *cobra.Command {
	var cursor string
	var limit int
	var filter schedule.Filter
	c := &cobra.Command{Use: "list", Short: "List schedules by name", Args: flags.NoArguments}
	c.Flags().StringVar(&cursor, "cursor", "", "the `name` that an earlier list printed last: go on behind it")
	c.Flags().IntVar(&limit, "limit", 100, "most schedules; 0 = all")
	c.Flags().StringVar(&filter.Prefix, "prefix", "", "only schedules whose `names` begin so")
	c.Flags().StringVar(&filter.Behavior, "behavior", "", "only schedules of this `behavior`")
	c.Flags().BoolVar(&filter.Paused, "paused", false, "only schedules that are paused")
	return t.Ask(c, func(ctx context.Context, client Client, _ []string) error {
		if limit < 0 {
			return &exitcode.UsageError{Problem: fmt.Sprintf("--limit %d: want 0 or more", limit)}
		}
		p, last := t.Print("NAME", "BEHAVIOR", "CRON", "ZONE", "NEXT", "LAST", "ACTIVE", "STATE"), cursor
		more, err := each(ctx, client.Schedules(), filter, cursor, limit, func(s *schedule.Schedule) error {
			d := &s.Definition
			last = s.Name
			return p.Row(s, s.Name, d.Behavior, cmp.Or(d.Cron, "-"), d.Timezone, nextOf(s), output.Time(s.Last), s.Active,
				state(s))
		})
		err = errors.Join(err, p.Flush())
		if more {
			fmt.Fprintf(t.Err, "there are more: go on with --cursor %s\n", last)
		}
		return err
	})
}

// pageSchedules is the number of schedules that one list may ask for.
const pageSchedules = 100

// each calls do for the schedules that a filter selects, by name, page by page, and reports whether there are more. A
// limit of 0 is none.
func each(
	ctx context.Context, all operations.Schedules, filter schedule.Filter, after string, limit int,
	do func(*schedule.Schedule) error,
) (more bool, err error) {
	for left := limit; ; {
		size := pageSchedules
		if limit > 0 {
			size = min(left, pageSchedules)
		}
		some, more, err := all.List(ctx, filter, after, size)
		if err != nil {
			return false, err
		}
		for i := range some {
			if err := do(&some[i]); err != nil {
				return false, err
			}
			after = some[i].Name
		}
		left -= len(some)
		if !more || len(some) == 0 || limit > 0 && left <= 0 {
			return more && len(some) > 0, nil
		}
	}
}
