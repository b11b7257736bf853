package works

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/work"
)

// Asks takes the commands of an attempt to the owner of its shard.
type Asks struct {
	// Ask sends a command of command.LaneWork and waits for its answer, Read one of command.LaneQuery.
	Ask    func(ctx context.Context, shard int, c command.Command) (command.Answer, error)
	Read   func(ctx context.Context, shard int, c command.Command) (command.Answer, error)
	Shards int
}

// Attempt names an attempt of a work's own task, or of a worker.
type Attempt struct {
	Task    events.TaskID
	Started events.Ref
	Node    string
	Parent  events.TaskID // of a worker: the task that has the work; "" = the attempt is of that task
}

// ErrOver is wrapped by the error of an attempt that is over, or runs elsewhere: what it reports does not count.
var ErrOver = errors.New("the attempt is over or runs elsewhere")

// Ledger implements work.Ledger for an attempt by commands to the owner of its shard.
type Ledger struct {
	asks    Asks
	attempt Attempt
	shard   int
	stopped atomic.Bool // the work has told the attempt to stop
}

// NewLedger returns the ledger of an attempt. It starts nothing.
func NewLedger(asks Asks, a Attempt) *Ledger {
	return &Ledger{
		asks:    asks,
		attempt: a,
		shard:   a.Task.Shard(asks.Shards),
	}
}

var _ work.Ledger = (*Ledger)(nil)

// Open implements work.Ledger. Where the work has stopped, or is gone, Next says so.
func (l *Ledger) Open(ctx context.Context, plan work.Plan) (work.Opened, error) {
	c := &Plan{
		Task:    string(l.attempt.Task),
		Started: uint64(l.attempt.Started),
		Node:    l.attempt.Node,
		Parent:  string(l.attempt.Parent),
	}
	of := l.attempt.Parent
	if of == "" {
		of = l.attempt.Task
		c.Definition, c.Partitions = plan.Definition, EncodePartitions(recorded(&plan))
	}
	m, err := l.ask(ctx, c)
	if err != nil {
		return work.Opened{}, err
	}
	if State(m.State) == Stop || m.Run == 0 {
		return work.Opened{Run: m.Run, Plan: plan}, nil
	}
	a, err := l.asks.Read(ctx, l.shard, &Show{Task: string(of), Plan: true, Linear: true})
	if err == nil {
		err = a.Err(of)
	}
	if err != nil {
		return work.Opened{}, fmt.Errorf("reading the plan: %w", err)
	}
	shown, err := command.ReadLenient[Shown](a.Data)
	if err != nil {
		return work.Opened{}, fmt.Errorf("reading the plan: %w", err)
	}
	return opened(&shown)
}

// opened returns a run as it is recorded.
func opened(shown *Shown) (work.Opened, error) {
	all, err := decodePartitions(shown.Partitions)
	if err != nil {
		return work.Opened{}, fmt.Errorf("reading the partitions: %w", err)
	}
	o := work.Opened{
		Run:     shown.Run,
		Started: events.Millis(shown.PlannedAt).Time(),
		Plan:    work.Plan{Definition: shown.Definition},
	}
	for i := range all {
		p, err := planned(&all[i])
		if err != nil {
			return work.Opened{}, fmt.Errorf("reading the segmentation of partition %s: %w", all[i].ID, err)
		}
		o.Plan.Partitions = append(o.Plan.Partitions, p)
	}
	return o, nil
}

// recorded returns the partitions of a plan as events have them.
func recorded(plan *work.Plan) []events.WorkPartition {
	all := make([]events.WorkPartition, len(plan.Partitions))
	for i := range plan.Partitions {
		p := &plan.Partitions[i]
		all[i] = events.WorkPartition{
			ID:       p.ID,
			Mode:     events.WorkMode(p.Mode),
			Buckets:  uint64(p.Buckets),
			Workers:  uint32(p.Workers),
			Threads:  uint32(p.Threads),
			Segments: encodeSegmentation(&p.Segmentation),
		}
		for _, t := range p.Thresholds {
			all[i].Thresholds = append(all[i].Thresholds, events.WorkThreshold{Counter: t.Counter, Limit: uint64(t.Limit)})
		}
	}
	return all
}

// planned is the reverse of recorded for a partition.
func planned(p *events.WorkPartition) (work.PartitionPlan, error) {
	segments, err := decodeSegmentation(p.Segments)
	plan := work.PartitionPlan{
		ID:           p.ID,
		Mode:         work.Mode(p.Mode),
		Segmentation: segments,
		Buckets:      int64(p.Buckets),
		Workers:      int64(p.Workers),
		Threads:      int64(p.Threads),
	}
	for _, t := range p.Thresholds {
		plan.Thresholds = append(plan.Thresholds, work.Threshold{Counter: t.Counter, Limit: int64(t.Limit)})
	}
	return plan, err
}

// Begin implements work.Ledger.
func (l *Ledger) Begin(ctx context.Context, b work.Beginning) error {
	_, err := l.ask(ctx, &Begin{
		Task:      string(l.attempt.Task),
		Started:   uint64(l.attempt.Started),
		Node:      l.attempt.Node,
		Partition: int64(b.Partition) + 1,
		Counted:   b.Counted,
		Expected:  uint64(max(b.Expected, 0)),
	})
	return err
}

// Next implements work.Ledger. The end of the attempt returns its bucket, so nothing is sent for one that is given back.
func (l *Ledger) Next(ctx context.Context, r work.Report) (work.Answer, error) {
	if l.stopped.Load() && r.Bucket == 0 || r.Returned || r.Last && r.Bucket == 0 {
		return work.Answer{State: work.Stopped}, nil
	}
	m, err := l.ask(ctx, l.report(&r))
	if err != nil || r.Last {
		return work.Answer{State: work.Stopped}, err
	}
	a := work.Answer{Partition: int(m.Partition) - 1}
	switch State(m.State) {
	case Go:
		a.State, a.Bucket = work.Working, int64(m.Bucket)
	case Wait:
		a.State = work.Waiting
	case Next:
		if a.State = work.Starting; l.attempt.Parent != "" { // the work's own task begins it
			a.State = work.Waiting
		}
	case Over:
		a.State = work.Finished
	default:
		a.State = work.Stopped
	}
	return a, nil
}

// report returns the command that reports on a bucket.
func (l *Ledger) report(r *work.Report) *Bucket {
	c := &Bucket{
		Task:    string(l.attempt.Task),
		Started: uint64(l.attempt.Started),
		Node:    l.attempt.Node,
		Ended:   uint64(r.Bucket),
		Done:    uint64(r.Items.Done),
		Failed:  uint64(r.Items.Failed),
		Skipped: uint64(r.Items.Skipped),
		Want:    !r.Last,
	}
	if len(r.Errors) > 0 {
		c.Errors = encodeErrors(r.Errors)
	}
	return c
}

// Permit implements work.Ledger.
func (l *Ledger) Permit(ctx context.Context, a work.Ask) (bool, error) {
	if l.stopped.Load() {
		return false, nil
	}
	m, err := l.ask(ctx, &Permits{
		Task:    string(l.attempt.Task),
		Started: uint64(l.attempt.Started),
		Node:    l.attempt.Node,
		Counter: a.Counter,
		Items:   []uint64{a.Item},
	})
	return err == nil && len(m.Granted) == 1 && m.Granted[0] == 1, err
}

// ask asks the owner.
func (l *Ledger) ask(ctx context.Context, c command.Command) (m moved, err error) {
	a, err := l.asks.Ask(ctx, l.shard, c)
	switch {
	case err != nil:
		return m, err
	case a.Code == command.AnswerStale:
		return m, ErrOver
	case a.Code != command.AnswerOK:
		return m, a.Err(l.attempt.Task)
	}
	if m, err = command.ReadLenient[moved](a.Data); err == nil && State(m.State) == Stop {
		l.stopped.Store(true)
	}
	return m, err
}
