package schedules

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection/schedules"
	"taskledger/schedule"
	"taskledger/task"
)

// setTries bounds how often a definition is sent again because the schedule has changed meanwhile.
const setTries = 5

// Config lets a Client reach owners.
type Config struct {
	// Ask sends a command of command.LaneSubmit and waits for its answer, Read one of command.LaneQuery.
	Ask    func(ctx context.Context, shard int, c command.Command) (command.Answer, error)
	Read   func(ctx context.Context, shard int, c command.Command) (command.Answer, error)
	Shards int
	Now    func() time.Time
}

// Client takes commands and questions to the owners of schedules. Its methods may be called concurrently.
type Client struct{ cfg Config }

// New returns a client. It starts nothing.
func New(cfg Config) *Client { return &Client{cfg: cfg} }

// Definition is a definition that was planned.
type Definition struct {
	Plan   events.SchedulePlan
	Params events.Payload
	Code   string           // hash of the definition in code; "" = none
	Seen   schedule.Version // 0 = any
	Reason string           // "" = none
}

// Set makes a schedule, or changes it.
func (c *Client) Set(ctx context.Context, name string, d *Definition) (v schedule.Version, changed bool, err error) {
	ticks, err := schedule.TicksOf(&d.Plan)
	if err != nil {
		return 0, false, err
	}
	cmd := &Set{
		Name:   name,
		Plan:   EncodePlan(&d.Plan),
		Params: d.Params,
		Code:   d.Code,
		Seen:   uint64(d.Seen),
		Reason: d.Reason,
	}
	if err := command.Check(cmd); err != nil {
		return 0, false, err
	}
	var a command.Answer
	for range setTries {
		var after events.Millis
		if after, err = c.after(ctx, name); err != nil {
			return 0, false, err
		}
		next := ticks.Next(after)
		cmd.Next, cmd.Offset = int64(next), 0
		if next != 0 {
			cmd.Offset = ticks.Offset(next)
		}
		if a, err = c.ask(ctx, name, cmd); a.Code != command.AnswerChanged {
			break
		}
	}
	if err != nil {
		return 0, false, err
	}
	set, err := command.ReadLenient[setAnswer](a.Data)
	return schedule.Version(set.Version), set.Changed, err
}

// after returns the time after which the first tick comes of a definition that is set now: by the owner's clock, which
// decides its ticks, and after the last decided one.
func (c *Client) after(ctx context.Context, name string) (events.Millis, error) {
	a, err := c.cfg.Read(ctx, Shard(name, c.cfg.Shards), &Get{Name: name})
	now := events.Millis(a.Number)
	if err != nil || a.Code == command.AnswerNotFound {
		return now, err
	}
	if err := failure(name, &a); err != nil {
		return 0, err
	}
	all, _, err := decodePage(a.Data)
	if err != nil || len(all) != 1 {
		return 0, fmt.Errorf("schedule %s: answer of %d schedules: %w", name, len(all), err)
	}
	return max(now, all[0].Last), nil
}

// Get returns a schedule. With linear it reflects everything that was committed before the call.
func (c *Client) Get(ctx context.Context, name string, linear bool) (schedule.Schedule, error) {
	q := &Get{Name: name, Linear: linear}
	if err := command.Check(q); err != nil {
		return schedule.Schedule{}, err
	}
	a, err := c.cfg.Read(ctx, Shard(name, c.cfg.Shards), q)
	if err == nil {
		err = failure(name, &a)
	}
	if err != nil {
		return schedule.Schedule{}, err
	}
	all, _, err := decodePage(a.Data)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("schedule %s: answer of %d schedules", name, len(all))
	}
	if err != nil {
		return schedule.Schedule{}, err
	}
	return all[0], nil
}

// List returns up to limit of the schedules that a filter selects, by name, after one name, and reports whether there
// may be others. It asks every shard.
func (c *Client) List(
	ctx context.Context, f schedule.Filter, after string, limit int,
) (all []schedule.Schedule, more bool, err error) {
	q := &List{
		After:    after,
		Limit:    int64(limit),
		Prefix:   f.Prefix,
		Behavior: f.Behavior,
		Paused:   f.Paused,
	}
	if err := command.Check(q); err != nil {
		return nil, false, err
	}
	upTo := "" // the last name that every shard has told; "" = each has told all
	for shard := range c.cfg.Shards {
		a, err := c.cfg.Read(ctx, shard, q)
		if err == nil {
			err = failure("", &a)
		}
		if err != nil {
			return nil, false, fmt.Errorf("schedules of shard %d: %w", shard, err)
		}
		some, others, err := decodePage(a.Data)
		if err != nil {
			return nil, false, fmt.Errorf("schedules of shard %d: %w", shard, err)
		}
		all, more = append(all, some...), more || others
		if n := len(some); others && n > 0 && (upTo == "" || some[n-1].Name < upTo) {
			upTo = some[n-1].Name
		}
	}
	if upTo != "" { // a later page goes on behind its last name, on every shard
		all = slices.DeleteFunc(all, func(s schedule.Schedule) bool { return s.Name > upTo })
	}
	slices.SortFunc(all, func(a, b schedule.Schedule) int { return strings.Compare(a.Name, b.Name) })
	if len(all) > limit {
		all, more = all[:limit:limit], true
	}
	return all, more, nil
}

// Steer pauses, resumes or deletes a schedule, or ends its backfill.
func (c *Client) Steer(ctx context.Context, name string, verb Verb, reason string, seen schedule.Version) error {
	cmd := &Steer{
		Name:   name,
		Verb:   int64(verb),
		Reason: reason,
		Seen:   uint64(seen),
	}
	if err := command.Check(cmd); err != nil {
		return err
	}
	_, err := c.ask(ctx, name, cmd)
	return err
}

// Run makes a run now, or shares one. The text of tells this run from others that are asked for; with keyed it is
// derived from a key. Priority 0 stands for the schedule's own.
func (c *Client) Run(
	ctx context.Context, name, of string, keyed bool, priority int64, seen schedule.Version,
) (id events.TaskID, a command.Answer, err error) {
	cmd := &Run{
		Name:     name,
		ID:       string(schedules.HandRun(name, of)),
		Seen:     uint64(seen),
		Priority: priority,
		Keyed:    keyed,
	}
	if err := command.Check(cmd); err != nil {
		return "", a, err
	}
	a, err = c.ask(ctx, name, cmd)
	return events.TaskID(a.Data), a, err
}

// Backfill begins a backfill of the ticks from one time to another, both inclusive, and returns how many they are by
// the definition of the version seen; 0 = as it is.
func (c *Client) Backfill(
	ctx context.Context, name string, from, to time.Time, seen schedule.Version,
) (int, error) {
	s, err := c.Get(ctx, name, false)
	if err != nil {
		return 0, err
	}
	if s.Definition.Cron == "" {
		return 0, invalid("cron", "the schedule has none, and so no ticks")
	}
	plan := events.SchedulePlan{
		Cron:  s.Definition.Cron,
		Zone:  s.Definition.Timezone,
		Start: events.MillisOf(s.Definition.Start),
		End:   events.MillisOf(s.Definition.End),
	}
	ticks, err := schedule.TicksOf(&plan)
	if err != nil {
		return 0, err
	}
	first, last := events.MillisOf(from), events.MillisOf(to)
	switch {
	case first <= 0 || last > events.MaxTick:
		return 0, invalid("from", "want times of the years 1970 to 9999")
	case first > last:
		return 0, invalid("from", "it is after to")
	case !to.Before(c.cfg.Now()):
		return 0, invalid("to", "want a time of the past")
	}
	all, more := ticks.Between(first, last, events.MaxBackfill)
	switch {
	case more:
		return 0, &task.LimitError{Field: "ticks", Limit: events.MaxBackfill, Got: events.MaxBackfill + 1}
	case len(all) == 0:
		return 0, invalid("from", "no tick lies between from and to")
	}
	cmd := &Backfill{
		Name:  name,
		From:  int64(all[0]),
		To:    int64(all[len(all)-1]),
		Ticks: int64(len(all)),
		Seen:  uint64(cmp.Or(seen, s.Version)),
	}
	if err := command.Check(cmd); err != nil {
		return 0, err
	}
	_, err = c.ask(ctx, name, cmd)
	return len(all), err
}

// ask sends a command.
func (c *Client) ask(ctx context.Context, name string, cmd command.Command) (command.Answer, error) {
	a, err := c.cfg.Ask(ctx, Shard(name, c.cfg.Shards), cmd)
	if err != nil {
		return a, fmt.Errorf("schedule %s: %w", name, err)
	}
	return a, failure(name, &a)
}

// failure returns the error of an answer that brings nothing.
func failure(name string, a *command.Answer) error {
	switch a.Code {
	case command.AnswerOK:
		return nil
	case command.AnswerNotFound:
		return fmt.Errorf("schedule %s: %w", name, schedule.ErrNotFound)
	case command.AnswerChanged:
		return fmt.Errorf("schedule %s: %w", name, schedule.ErrChanged)
	case command.AnswerBug:
		return fmt.Errorf("schedule %s: nothing was changed, because of a bug in the shard's owner: %s", name, a.Text)
	}
	if name == "" {
		return a.Err("")
	}
	return fmt.Errorf("schedule %s: %w", name, a.Err(""))
}
