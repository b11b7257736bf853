package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/tasklog"
)

// lateLines is the time from the beginning of an attempt for which lines of earlier ones may still come: more than
// a writer has to store what is left, and clocks differ.
const lateLines = 10 * time.Second

// Log returns lines that a task has written: those of its present life, or of its last one while they are there. The
// attempts come one after the other, the oldest first, as tasklog.ReadTask tells them. Whoever goes on by the cursor
// of a page is told first what earlier attempts have stored since, if the page was read in the first 10 s of the
// latest attempt.
//
// It returns tasklog.ErrNone without ClientConfig.Logs, the errors of GetForgotten for a task that is not found, and
// tasklog.ErrGone for one that retention has removed from memory, whose log is no longer there, and for an attempt
// before the newest tasklog.MaxAttempts. A selection that breaks a rule is a *store.InvalidError. Other errors wrap
// store.ErrUnavailable where the logs cannot be read.
func (c *Client) Log(ctx context.Context, id events.TaskID, s tasklog.Selection) (told tasklog.Told, err error) {
	if c.cfg.Logs == nil {
		return told, fmt.Errorf("log of task %s: %w", id, tasklog.ErrNone)
	}
	t, err := c.logged(ctx, id, s.Cursor)
	if err != nil {
		return told, err
	}
	if t.Kind != nil {
		told.Behavior = t.Kind.Behavior
	}
	q := tasklog.Query{
		Shard:    uint16(id.Shard(c.cfg.Shards)),
		Life:     t.Created,
		Attempts: attemptsOf(&t, s.Attempt),
		Since:    s.Since,
		Until:    s.Until,
		Level:    s.Level,
		Limit:    s.Limit,
		Late:     t.Attempt > 1 && events.MillisOf(c.now())-t.StartedAt < events.Millis(lateLines.Milliseconds()),
	}
	if q.After, err = tasklog.ParseCursor(s.Cursor, id, t.Created); err != nil {
		return told, err
	}
	if s.Attempt > 0 && len(q.Attempts) == 0 && s.Attempt <= t.Attempt {
		return told, fmt.Errorf("attempt %d of task %s: %w: it has those of its newest %d attempts",
			s.Attempt, id, tasklog.ErrGone, tasklog.MaxAttempts)
	}
	empty := s.Until != 0 && s.Until < s.Since
	if empty {
		q.Attempts = nil
	}
	page, err := c.readLog(ctx, &t, q)
	if err != nil {
		return told, fmt.Errorf("task %s: %w", id, err)
	}
	told.Lines, told.More, told.Cursor = page.Lines, page.More, page.Next.Text(id, t.Created)
	told.Ended = t.Final() || empty || s.Until != 0 && s.Until < events.MillisOf(c.now()) ||
		s.Attempt > 0 && (s.Attempt < t.Attempt || s.Attempt == t.Attempt && !t.OnNode())
	return told, nil
}

// attemptsOf returns the attempts of a task that have a log: all, or one of them. When those before the last one
// began the task does not tell: no earlier than it was created.
func attemptsOf(t *projection.Task, one uint32) (all []tasklog.Begun) {
	for n := t.Attempt - min(t.Attempt, tasklog.MaxAttempts) + 1; n <= t.Attempt; n++ {
		at := t.CreatedAt
		if n == t.Attempt {
			at = t.StartedAt
		}
		if one == 0 || one == n {
			all = append(all, tasklog.Begun{Number: n, At: at})
		}
	}
	return all
}

// readLog reads a page of the log of a task. It reads the history, too, where the page depends on when an attempt
// began.
func (c *Client) readLog(ctx context.Context, t *projection.Task, q tasklog.Query) (tasklog.Page, error) {
	from := &noting{Reader: c.cfg.Logs, last: t.Attempt}
	page, err := tasklog.ReadTask(ctx, from, q)
	switch {
	case err != nil:
		return page, err
	case t.Forgotten && from.empty && !from.passed(ctx, q):
		return page, fmt.Errorf("%w: the task was forgotten", tasklog.ErrGone)
	case from.oldest <= t.CreatedAt || !c.tellBegun(ctx, t, q.Attempts):
		return page, nil
	}
	return tasklog.ReadTask(ctx, c.cfg.Logs, q)
}

// noting is a reader of the logs of a task that notes what it finds.
type noting struct {
	tasklog.Reader
	last         uint32        // attempt of the task
	found, empty bool          // an attempt has lines, or none
	oldest       events.Millis // the latest Oldest of an earlier attempt
}

// Read implements tasklog.Reader.
func (n *noting) Read(ctx context.Context, of tasklog.Attempt, r tasklog.Range) (tasklog.Stretch, error) {
	s, err := n.Reader.Read(ctx, of, r)
	n.found = n.found || s.Last > 0
	n.empty = n.empty || s.Last == 0
	if of.Number < n.last {
		n.oldest = max(n.oldest, s.Oldest)
	}
	return s, err
}

// passed reports whether an attempt has lines, also one that the cursor of q has passed over.
func (n *noting) passed(ctx context.Context, q tasklog.Query) bool {
	for _, a := range q.Attempts {
		if n.found || a.Number >= q.After.Attempt {
			break
		}
		of := tasklog.Attempt{Shard: q.Shard, Life: q.Life, Number: a.Number}
		if _, err := n.Read(ctx, of, tasklog.Range{From: math.MaxUint64}); err != nil {
			return true // nothing is known to be gone
		}
	}
	return n.found
}

// maxBegun bounds the latest events of a task among which is looked for when its attempts began.
const maxBegun = 100

// tellBegun says of attempts when they began, as far as the latest events of the task tell, and reports whether any
// does. What it cannot read it leaves out: only the time of a line that says that others may be missing depends on it,
// and whether there is one.
func (c *Client) tellBegun(ctx context.Context, t *projection.Task, attempts []tasklog.Begun) (tells bool) {
	page, err := c.Ledger().HistoryPage(ctx, t.ID, ledger.HistoryOptions{Newest: true, Limit: maxBegun})
	if err != nil {
		return false
	}
	for _, e := range page.Events {
		started, is := e.Body.(*events.Started)
		for i := range attempts {
			if is && attempts[i].Number == started.Attempt && e.Position.Ref > t.Created {
				attempts[i].At, tells = e.At, true
			}
		}
	}
	return tells
}
