package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"taskledger/engine/internal/futures"
	"taskledger/engine/internal/schedules"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
)

// Schedules sets, reads and steers schedules. A name has 1 to 64 bytes of [A-Za-z0-9._:-]; it is no ".", "..",
// "cluster", and does not begin with "store:". The runs of a schedule are the tasks "NAME/tick:MS" of its ticks, MS
// being the tick in milliseconds since 1970, "NAME/run:..." of those that somebody asked for, and "NAME/fill:MS" of
// backfills, with ":SINCE" behind it, when the backfill began, if an earlier one has had the tick. No submit may name
// such a task, whether the schedule exists or not. Definition.UUIDs names them "NAME/UUID" instead: a submit may make a
// task of such an id before, which the tick then meets as taken, and shares none that is a run.
//
// A method returns an error that wraps schedule.ErrNotFound if there is no such schedule, a *store.InvalidError or a
// *task.LimitError for an argument that breaks a rule, by field and limit, store.ErrUnavailable if the command was not
// sent or nobody answers a question, a *task.OverloadError if there is no room, and task.ErrUnknown if a command was
// sent and not answered: all but Run may be repeated then, and Run with a key.
//
// seen is the version of the schedule that the caller knows: another one is left as it is, and the error wraps
// schedule.ErrChanged. 0 stands for any version, schedule.Absent for none.
type Schedules struct{ c *Client }

// Schedules returns the schedules of the cluster.
func (c *Client) Schedules() Schedules { return Schedules{c} }

// Set makes a schedule, or changes it; an equal definition changes nothing, and changed is false. A node that has the
// behavior checks the parameters and completes the policy, and what it says is recorded: rules of a later release count
// from the next Set.
//
// The ticks of the old definition that are due stay so if cron, time zone, start and end are the same; else the first
// tick is the next one by the clock of this process.
func (s Schedules) Set(
	ctx context.Context, name string, d schedule.Definition, seen schedule.Version,
) (v schedule.Version, changed bool, err error) {
	return s.SetWith(ctx, name, d, schedule.Setting{Seen: seen})
}

// SetWith is Set with a reason, which stands in the history beside the definition. A definition that SetWith leaves
// as it is keeps the reason that it has. An owner of a release without SetWith refuses a reason.
func (s Schedules) SetWith(
	ctx context.Context, name string, d schedule.Definition, how schedule.Setting,
) (v schedule.Version, changed bool, err error) {
	planned, err := s.plan(ctx, &d)
	if err != nil {
		return 0, false, err
	}
	planned.Seen, planned.Reason = how.Seen, how.Reason
	return s.c.schedules.Set(ctx, name, planned)
}

// plan has a node check a definition that has the behavior.
func (s Schedules) plan(ctx context.Context, d *schedule.Definition) (*schedules.Definition, error) {
	var behavior events.Policy
	if _, err := d.Plan(behavior); err != nil { // what no policy can mend is said without a node
		return nil, err
	}
	sub, err := s.c.plan(ctx, &task.Request{Name: d.Behavior, Params: d.Params})
	if err != nil {
		return nil, err
	}
	policy := sub.cmd.Policy
	policy.Priority = sub.cmd.Priority
	plan, err := d.Plan(policy)
	if err != nil {
		return nil, err
	}
	params, err := compact(sub.cmd.Params)
	return &schedules.Definition{Plan: plan, Params: params}, err
}

// setFromCode sets a schedule as code defines it, unless it has been so once.
func (s Schedules) setFromCode(ctx context.Context, code *codeSchedule) error {
	planned, err := s.plan(ctx, &code.definition)
	if err != nil {
		return err
	}
	planned.Code = code.hash
	_, _, err = s.c.schedules.Set(ctx, code.name, planned)
	return err
}

// compact returns parameters without the spaces that make two equal ones differ.
func compact(params events.Payload) (events.Payload, error) {
	text, err := params.JSON()
	if err != nil || len(text) == 0 {
		return params, err
	}
	var short bytes.Buffer
	if err := json.Compact(&short, text); err != nil {
		return nil, fmt.Errorf("parameters of a schedule: %w", err)
	}
	return events.JSON(short.Bytes()), nil
}

// Get returns a schedule. It may be a moment behind.
func (s Schedules) Get(ctx context.Context, name string) (schedule.Schedule, error) {
	return s.c.schedules.Get(ctx, name, false)
}

// GetLinear is Get, and reflects everything that was committed before the call.
func (s Schedules) GetLinear(ctx context.Context, name string) (schedule.Schedule, error) {
	return s.c.schedules.Get(ctx, name, true)
}

// List returns up to limit, 1 to 100, of the schedules that a filter selects, ordered by name, beginning behind the
// name after; "" = from the first one. more reports that there may be others. It asks every shard, and fails if one
// does not answer.
func (s Schedules) List(
	ctx context.Context, f schedule.Filter, after string, limit int,
) (all []schedule.Schedule, more bool, err error) {
	return s.c.schedules.List(ctx, f, after, limit)
}

// Pause keeps a schedule from deciding ticks until it is resumed: ticks that fall between have no runs. Runs by hand
// and backfills go on. reason has 256 bytes at most. To pause a paused schedule changes nothing.
func (s Schedules) Pause(ctx context.Context, name, reason string, seen schedule.Version) error {
	return s.c.schedules.Steer(ctx, name, schedules.Pause, reason, seen)
}

// Resume ends Pause.
func (s Schedules) Resume(ctx context.Context, name string, seen schedule.Version) error {
	return s.c.schedules.Steer(ctx, name, schedules.Resume, "", seen)
}

// Delete ends a schedule. Its runs go on, and its history stays.
func (s Schedules) Delete(ctx context.Context, name string, seen schedule.Version) error {
	return s.c.schedules.Steer(ctx, name, schedules.Delete, "", seen)
}

// Run makes a run now, also of a paused schedule, with the definition as it is. Unless the schedule allows overlaps it
// shares a run that has not ended: the future is that of this run, and Joined. A repetition with the same key, up to
// 239 bytes, of the same principal shares the run that the first one made, as long as that is kept, and is Repeated, or
// the one that it shared: a run remembers 64 requests of the last 10 minutes. Without a key each call is a request of
// its own.
func (s Schedules) Run(ctx context.Context, name, key string, seen schedule.Version) (*Future, error) {
	return s.RunWith(ctx, name, schedule.ByHand{Key: key}, seen)
}

// RunWith is Run with a priority beside the key. A run that is shared keeps its priority. An owner of a release
// without RunWith refuses a priority, and a key.
func (s Schedules) RunWith(
	ctx context.Context, name string, is schedule.ByHand, seen schedule.Version,
) (*Future, error) {
	key := is.Key
	if len(key) > events.MaxKeyBytes {
		err := &task.LimitError{Field: "request key", Limit: events.MaxKeyBytes, Got: int64(len(key))}
		return failedFuture("", err), err
	}
	of := string(s.c.ids.Draw(s.c.now()))
	if key != "" {
		of = string(events.TaskOfRequest(s.c.principal(ctx), name, key))
	}
	id, a, err := s.c.schedules.Run(ctx, name, of, key != "", is.Priority, seen)
	if err != nil {
		return failedFuture(id, err), err
	}
	f := &Future{id: id, joined: a.Joined, repeated: a.Repeated}
	f.run.Begin(s.c.futures, futures.Run{
		Shard:  id.Shard(s.c.cfg.Shards),
		Task:   id,
		Life:   a.Life,
		Number: a.Run,
		Since:  events.Ref(a.Number) + 1,
	})
	return f, nil
}

// Backfill gives the ticks from one time of the past to another, both inclusive, runs of their own, the oldest first,
// one at a time, whether these ticks had runs or not, and returns how many they are: 1 to 1,000. A schedule has one
// backfill at a time. Of a definition that changes during the call nothing is filled, and the error wraps
// schedule.ErrChanged.
func (s Schedules) Backfill(
	ctx context.Context, name string, from, to time.Time, seen schedule.Version,
) (ticks int, err error) {
	return s.c.schedules.Backfill(ctx, name, from, to, seen)
}

// EndBackfill ends a backfill: no further tick of it has a run. One that runs goes on.
func (s Schedules) EndBackfill(ctx context.Context, name, reason string, seen schedule.Version) error {
	return s.c.schedules.Steer(ctx, name, schedules.EndBackfill, reason, seen)
}
