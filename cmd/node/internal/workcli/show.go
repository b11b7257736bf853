package workcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/work/progress"
)

func (t *Terminal) show() *cobra.Command {
	var buckets bool
	c := t.of("show", "Tell how far a work has come",
		`Percents, items and rates count the buckets that are done: what is done stays done, whatever node dies. WALL
tells for how long buckets were open, LEFT how long the others of the partition take at that rate. STALLED tells since
when no bucket has ended, and of a stream no change was processed, once that is 10 minutes. FAILED says "in a span"
where the buckets with failed items are remembered as all from the first of them to the last, which work rerun takes.`,
		func(ctx context.Context, works operations.Works, id events.TaskID) error {
			w, err := works.Work(ctx, id)
			if err != nil {
				return err
			}
			if p := t.Print(); p.IsJSON() {
				return errors.Join(p.Row(w), p.Flush())
			}
			return errors.Join(t.head(&w), t.partitions(&w), t.thresholds(&w), t.open(&w, buckets))
		})
	c.Flags().BoolVar(&buckets, "buckets", false, "also each bucket that is worked on, with its worker and node")
	return c
}

// head prints what concerns all partitions.
func (t *Terminal) head(w *progress.Work) error {
	rows := [][2]any{
		{"work", w.Task}, {"behavior", w.Behavior}, {"state", w.State}, {"progress", w.Progress}, {"task", w.Status},
		{"run", run(w)}, {"items", items(&w.Items)}, {"workers", workers(&w.Workers)},
	}
	pushed := func(p progress.Partition) bool { return p.Stream == progress.Form(events.FormPushed) }
	rows = append(rows, stream(w.Stream, slices.ContainsFunc(w.Partitions, pushed))...)
	if w.Waits {
		rows = append(rows, [2]any{"waits", "the task itself waits for its workers"})
	}
	if f := w.Failing; f != nil {
		text := fmt.Sprintf("attempts on bucket %d have failed %s", f.Bucket, times(f.Attempts))
		if w.Stream != nil {
			text = "attempts have failed " + times(f.Attempts)
		}
		rows = append(rows, [2]any{"failing", text})
	}
	if w.Error != nil {
		rows = append(rows, [2]any{"error", w.Error.Code + ": " + w.Error.Message})
	}
	if w.Errors.Bytes >= w.Errors.Limit {
		rows = append(rows, [2]any{"errors", "further ones are counted alone: their texts have reached their limit"})
	}
	p := t.Print()
	for _, r := range rows {
		if err := p.Row(nil, r[0], r[1]); err != nil {
			return err
		}
	}
	return p.Flush()
}

// stream returns the rows of a stream, none for a work that is none. A pushed one may have no token.
func stream(s *progress.Stream, pushed bool) (rows [][2]any) {
	if s == nil {
		return nil
	}
	token := "none yet"
	if s.MovedAt != 0 {
		token = fmt.Sprintf("%q, since %s", s.Token, output.Time(s.MovedAt))
	}
	if !pushed || s.MovedAt != 0 {
		rows = append(rows, [2]any{"token", token})
	}
	if s.SimulatedTo != "" {
		to := fmt.Sprintf("up to %q", s.SimulatedTo)
		if s.Unsimulated {
			to += ", where the full stream has not ended: it may have taken changes that were not simulated"
		}
		rows = append(rows, [2]any{"simulated", to})
	}
	lag := fmt.Sprintf("%d changes", s.Lag.Open)
	if s.Lag.AgeMs > 0 {
		lag += ", the oldest " + duration(&s.Lag.AgeMs) + " old"
	}
	rows = append(rows, [2]any{"lag", lag}, [2]any{"changes/s", number(s.ChangesPerSecond)})
	if s.QuietSince != 0 {
		rows = append(rows, [2]any{"quiet", "no change has come since " + output.Time(s.QuietSince)})
	}
	if h := s.Holds; h.Changes > 0 {
		const say = "%d changes, %d keys wait: %d retried, %d parked, %d failed"
		rows = append(rows, [2]any{"held", fmt.Sprintf(say, h.Changes, h.Keys, h.Retried, h.Parked, h.Failed)})
	}
	return rows
}

func run(w *progress.Work) string {
	text := fmt.Sprintf("%d, planned at %s", w.Run, output.Time(w.PlannedAt))
	switch {
	case w.PlannedAt == 0:
		return "reset: the next attempt plans another one"
	case w.FailedOnly:
		text += ", of the buckets that had failed items"
	}
	return text
}

func items(i *progress.Items) string {
	text := fmt.Sprintf("%d done, %d failed, %d skipped", i.Done, i.Failed, i.Skipped)
	if i.InOpen > 0 {
		text += fmt.Sprintf(", %d in open buckets", i.InOpen)
	}
	return text
}

func workers(w *progress.Workers) string {
	text := fmt.Sprintf("%d, of which %d run", w.Active, w.Running)
	var nodes []string
	for _, n := range w.Nodes {
		nodes = append(nodes, fmt.Sprintf("%d on %s", n.Workers, n.Node))
	}
	if len(nodes) > 0 {
		text += ": " + strings.Join(nodes, ", ")
	}
	return text
}

func (t *Terminal) partitions(w *progress.Work) error {
	p := t.Print("PARTITION", "MODE", "STATE", "PROGRESS", "DONE", "FAILED", "SKIPPED", "EXPECTED", "WALL", "ITEMS/S",
		"LEFT", "STALLED")
	for i := range w.Partitions {
		is := &w.Partitions[i]
		expected := "-"
		if is.Items.Expected != nil {
			expected = fmt.Sprint(*is.Items.Expected)
		}
		failed := fmt.Sprint(is.Items.Failed)
		if is.Buckets.FailedSpan {
			failed += " in a span"
		}
		err := p.Row(nil, is.ID, is.Mode, is.State, is.Progress, is.Items.Done, failed, is.Items.Skipped,
			expected, duration(&is.WallClockMs), number(is.ItemsPerSecond), duration(is.TimeLeftMs),
			output.Time(is.StalledSince))
		if err != nil {
			return err
		}
	}
	return p.Flush()
}

// times writes how often something was.
func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// duration writes milliseconds, in whole seconds where they are many; "-" for none.
func duration(ms *int64) string {
	if ms == nil {
		return "-"
	}
	d := time.Duration(min(*ms, int64(1<<62/time.Millisecond))) * time.Millisecond
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	return d.String()
}

func number(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprint(*x)
}

// thresholds prints the counters, if there are any.
func (t *Terminal) thresholds(w *progress.Work) error {
	if !slices.ContainsFunc(w.Partitions, func(p progress.Partition) bool { return len(p.Thresholds) > 0 }) {
		return nil
	}
	p := t.Print("COUNTER", "PARTITION", "MODE", "COUNT", "LIMIT", "TRIPPED")
	for i := range w.Partitions {
		for _, c := range w.Partitions[i].Thresholds {
			limit := fmt.Sprint(c.Limit)
			if c.Limit >= math.MaxInt64 {
				limit = "-" // it counts alone
			}
			if err := p.Row(nil, c.Counter, w.Partitions[i].ID, c.Mode, c.Count, limit, c.Tripped); err != nil {
				return err
			}
		}
	}
	return p.Flush()
}

// open prints the open buckets, if they are asked for and there are any.
func (t *Terminal) open(w *progress.Work, asked bool) error {
	if !asked || len(w.Open) == 0 {
		return nil
	}
	p := t.Print("BUCKET", "WORKER", "NODE", "SINCE", "ITEMS")
	for _, b := range w.Open {
		if err := p.Row(nil, b.Number, b.Task, cmp.Or(b.Node, "-"), output.Time(b.Since), b.InOpen); err != nil {
			return err
		}
	}
	return p.Flush()
}
