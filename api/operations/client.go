// Package operations has the operations of a cluster as interfaces, in parts for their callers, and the client that
// asks its etcd and NATS.
package operations

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"taskledger/bulk"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/item"
	"taskledger/ledger"
	"taskledger/ledger/repair"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/work/progress"
)

// Client has all operations of a cluster, in ten parts; each command takes the part that it uses.
type Client interface {
	Submitter
	Operator
	Reader
	Historian
	Logs
	Observer
	Stores() Stores
	Schedules() Schedules
	Backfills() Backfills
	Works() Works
}

// Submitter asks for work and waits for its outcome.
type Submitter interface {
	// SubmitRaw returns once the request is durable.
	SubmitRaw(ctx context.Context, behavior string, params []byte, o task.SubmitOptions) (Handle, error)
	// SubmitMany submits requests together, and returns the result of each.
	SubmitMany(ctx context.Context, requests []task.Request, o task.ManyOptions) []Submitted
	Attach(id events.TaskID) Handle
}

// Submitted holds the result of one request of many.
type Submitted struct {
	Handle
	Err error
}

// Handle is one task's outcome to come; *engine.Future implements it.
type Handle interface {
	ID() events.TaskID
	Joined() bool
	Repeated() bool // it repeats a request, by its key, and changed nothing
	Wait(ctx context.Context) (result []byte, err error)
	// Close stops waiting; the task goes on. Whoever has waited closes: a handle whose wait ended early is kept until
	// its task ends.
	Close()
}

// Operator changes tasks and behaviors.
type Operator interface {
	// Operate does what an operator asks for. anew says that a retried task was forgotten, and has begun a new life.
	Operate(ctx context.Context, verb Verb, on, reason string) (anew bool, err error)
	// OperateSeen is Operate of a task as it was seen, by its id and version. Once the task has another event, it does
	// nothing and returns a *task.StateError with Changed set.
	OperateSeen(ctx context.Context, verb Verb, seen *task.Task, reason string) (anew bool, err error)
	// Each is bulk.Each.
	Each(ctx context.Context, f task.Filter, op task.Operation, o bulk.Options) iter.Seq2[bulk.Report, error]
}

// Verb names a change that an operator asks for.
type Verb string

// The verbs, as the command line spells them. Pause and Unpause are about a behavior, the others about a task.
const (
	Cancel  Verb = "cancel"
	Suspend Verb = "suspend"
	Resume  Verb = "resume"
	Retry   Verb = "retry"
	RunNow  Verb = "run-now"
	Delete  Verb = "delete"
	Pause   Verb = "pause"
	Unpause Verb = "unpause"
)

// OfMany lists the verbs for all tasks that a filter selects.
var OfMany = map[Verb]task.Operation{
	Cancel: task.Cancel,
	Retry:  task.Retry,
	RunNow: task.RunNow,
	Delete: task.Delete,
}

// ofOne lists the verbs about a task.
var ofOne = map[Verb]task.Operation{
	Cancel:  task.Cancel,
	Suspend: task.Suspend,
	Resume:  task.Resume,
	Retry:   task.Retry,
	RunNow:  task.RunNow,
	Delete:  task.Delete,
}

// Reader reads tasks.
type Reader interface {
	Get(ctx context.Context, id events.TaskID) (task.Task, error)
	GetForgotten(ctx context.Context, id events.TaskID) (task.Task, error)
	ListPage(ctx context.Context, f task.Filter, cursor string) (task.Page, error)
	Counts(ctx context.Context, behavior string) (task.Counts, error)
	Explain(ctx context.Context, id events.TaskID) (engine.Explanation, error)
}

// Historian reads what was.
type Historian interface{ Ledger() *ledger.Ledger }

// Logs reads what tasks write.
type Logs interface {
	Log(ctx context.Context, id events.TaskID, s tasklog.Selection) (tasklog.Told, error)
}

// Observer looks at the cluster itself.
type Observer interface {
	Nodes(ctx context.Context) ([]store.NodeInfo, error)
	Shards(ctx context.Context) ([]engine.ShardInfo, error)
	Settings(ctx context.Context) (task.Settings, error)
	Repair(ctx context.Context, o repair.Options) ([]repair.Stray, error)
	// Ask is engine.Operations.Ask: a node, by the id of its session, answers a question about itself.
	Ask(ctx context.Context, session, name string, question []byte) ([]byte, error)
}

// Stores change and read the items of task stores, each by the name of its store, as engine.Stores does.
type Stores interface {
	Update(ctx context.Context, store string, u *item.Update) ([]item.Item, error)
	Claim(ctx context.Context, store string, q *item.Claim) (*item.Item, error)
	Items(ctx context.Context, store string, ids []int64, linear bool) ([]*item.Item, error)
	Group(ctx context.Context, store string, p item.Page) (items []item.Item, more bool, err error)
	Groups(ctx context.Context, store string, linear bool) ([]item.Group, error)
}

// Schedules set, read and steer schedules, each by its name, as engine.Schedules does.
type Schedules interface {
	SetWith(
		ctx context.Context, name string, d schedule.Definition, how schedule.Setting,
	) (v schedule.Version, changed bool, err error)
	Get(ctx context.Context, name string) (schedule.Schedule, error)
	List(
		ctx context.Context, f schedule.Filter, after string, limit int,
	) (all []schedule.Schedule, more bool, err error)
	// Steer does what a verb says: Pause and Resume are about ticks, Delete ends the schedule, EndBackfill its backfill.
	// With seen, the version that the caller knows, it changes no other; 0 = any.
	Steer(ctx context.Context, verb ScheduleVerb, name, reason string, seen schedule.Version) error
	// RunWith makes a run, or shares one.
	RunWith(ctx context.Context, name string, is schedule.ByHand, seen schedule.Version) (Handle, error)
}

// ScheduleVerb names a change of a schedule, as the command line and paths of HTTP spell it.
type ScheduleVerb string

// The verbs of schedules.
const (
	PauseSchedule  ScheduleVerb = "pause"
	ResumeSchedule ScheduleVerb = "resume"
	DeleteSchedule ScheduleVerb = "delete"
	EndBackfill    ScheduleVerb = "end-backfill"
)

// Backfills give ticks of the past runs.
type Backfills interface {
	// Backfill is engine.Schedules.Backfill.
	Backfill(
		ctx context.Context, name string, from, to time.Time, seen schedule.Version,
	) (ticks int, err error)
}

// Works read and steer the partitioned works of tasks, as engine.Operations does.
type Works interface {
	Work(ctx context.Context, id events.TaskID) (progress.Work, error)
	WorkLinear(ctx context.Context, id events.TaskID) (progress.Work, error)
	WorkFailures(
		ctx context.Context, id events.TaskID, cursor string, limit int,
	) (progress.FailurePage, error)
	// ResetWork is engine.Operations.ResetWork, and with a token SetWorkToken.
	ResetWork(ctx context.Context, id events.TaskID, how WorkReset) error
	RerunWork(ctx context.Context, id events.TaskID) error
}

// WorkReset says what a reset of a work does. The zero value forgets the run.
type WorkReset struct {
	Thresholds bool    // forget what the counters of thresholds have counted, and nothing else
	Token      *string // forget nothing, and have a stream go on from there; nil = no token is set
	Reason     string  // of Token
}

// Direct is a Client that is itself a client of the cluster's etcd and NATS.
type Direct struct{ *engine.Client }

var _ Client = Direct{}

// SubmitRaw implements Submitter.
func (d Direct) SubmitRaw(ctx context.Context, behavior string, params []byte, o task.SubmitOptions) (Handle, error) {
	return d.Client.SubmitRaw(ctx, behavior, params, o)
}

// SubmitMany implements Submitter.
func (d Direct) SubmitMany(ctx context.Context, requests []task.Request, o task.ManyOptions) []Submitted {
	results := d.Client.SubmitMany(ctx, requests, o)
	all := make([]Submitted, len(results))
	for i, r := range results {
		all[i] = Submitted{r.Future, r.Err}
	}
	return all
}

// Attach implements Submitter.
func (d Direct) Attach(id events.TaskID) Handle { return d.Client.Attach(id) }

// Each implements Operator.
func (d Direct) Each(
	ctx context.Context, f task.Filter, op task.Operation, o bulk.Options,
) iter.Seq2[bulk.Report, error] {
	return d.Client.Operations().Each(ctx, f, op, o)
}

// Operate implements Operator.
func (d Direct) Operate(ctx context.Context, verb Verb, on, reason string) (anew bool, err error) {
	if verb == Retry {
		return d.Client.Operations().Retry(ctx, events.TaskID(on))
	}
	return false, operate(ctx, d.Client.Operations(), verb, on, reason)
}

// OperateSeen implements Operator.
func (d Direct) OperateSeen(ctx context.Context, verb Verb, seen *task.Task, reason string) (anew bool, err error) {
	by := d.Client.Operations()
	if verb == Retry {
		return by.RetrySeen(ctx, seen)
	}
	to, is := ofOne[verb]
	if !is {
		return false, fmt.Errorf("verb %q is unknown", verb)
	}
	return false, by.Change(ctx, seen, to, reason)
}

func operate(ctx context.Context, by engine.Operations, verb Verb, on, reason string) error {
	id := events.TaskID(on)
	switch verb {
	case Cancel:
		return by.Cancel(ctx, id, reason)
	case Suspend:
		return by.Suspend(ctx, id, reason)
	case Resume:
		return by.Resume(ctx, id)
	case RunNow:
		return by.RunNow(ctx, id)
	case Delete:
		return by.Delete(ctx, id)
	case Pause:
		return by.Pause(ctx, on, reason)
	case Unpause:
		return by.Unpause(ctx, on)
	}
	return fmt.Errorf("verb %q is unknown", verb)
}

// Nodes implements Observer.
func (d Direct) Nodes(ctx context.Context) ([]store.NodeInfo, error) {
	return d.Client.Operations().Nodes(ctx)
}

// Shards implements Observer.
func (d Direct) Shards(ctx context.Context) ([]engine.ShardInfo, error) {
	return d.Client.Operations().Shards(ctx)
}

// Settings implements Observer.
func (d Direct) Settings(ctx context.Context) (task.Settings, error) {
	return d.Client.Operations().Settings(ctx)
}

// Repair implements Observer.
func (d Direct) Repair(ctx context.Context, o repair.Options) ([]repair.Stray, error) {
	return d.Client.Operations().Repair(ctx, o)
}

// Ask implements Observer.
func (d Direct) Ask(ctx context.Context, session, name string, question []byte) ([]byte, error) {
	return d.Client.Operations().Ask(ctx, session, name, question)
}

// Stores implements Client.
func (d Direct) Stores() Stores { return d.Client.Stores() }

// Schedules implements Client.
func (d Direct) Schedules() Schedules { return directSchedules{d.Client.Schedules()} }

// Backfills implements Client.
func (d Direct) Backfills() Backfills { return d.Client.Schedules() }

// Works implements Client.
func (d Direct) Works() Works { return directWorks{d.Client.Operations()} }

// directWorks implements Works.
type directWorks struct{ engine.Operations }

// ResetWork implements Works.
func (d directWorks) ResetWork(ctx context.Context, id events.TaskID, how WorkReset) error {
	if how.Token != nil {
		return d.Operations.SetWorkToken(ctx, id, *how.Token, how.Reason)
	}
	return d.Operations.ResetWork(ctx, id, how.Thresholds)
}

// directSchedules implements Schedules.
type directSchedules struct{ engine.Schedules }

// Steer implements Schedules.
func (d directSchedules) Steer(
	ctx context.Context, verb ScheduleVerb, name, reason string, seen schedule.Version,
) error {
	switch verb {
	case PauseSchedule:
		return d.Pause(ctx, name, reason, seen)
	case ResumeSchedule:
		return d.Resume(ctx, name, seen)
	case DeleteSchedule:
		return d.Delete(ctx, name, seen)
	case EndBackfill:
		return d.EndBackfill(ctx, name, reason, seen)
	}
	return fmt.Errorf("verb %q is unknown", verb)
}

// RunWith implements Schedules.
func (d directSchedules) RunWith(
	ctx context.Context, name string, is schedule.ByHand, seen schedule.Version,
) (Handle, error) {
	return d.Schedules.RunWith(ctx, name, is, seen)
}

// Runs reports whether any of the nodes has the code of a behavior.
func Runs(nodes []store.NodeInfo, behavior string) bool {
	return slices.ContainsFunc(nodes, func(n store.NodeInfo) bool { return slices.Contains(n.Behaviors, behavior) })
}
