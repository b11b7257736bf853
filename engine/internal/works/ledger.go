package works

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/work/workledger"
)

// Asks takes the commands of an attempt to the owner of its shard.
type Asks struct {
	// Ask sends a command of command.LaneWork and waits for its answer, Read one of command.LaneQuery.
	Ask    func(ctx context.Context, shard int, c command.Command) (command.Answer, error)
	Read   func(ctx context.Context, shard int, c command.Command) (command.Answer, error)
	Shards int
	// Leaving reports that the node of the attempt drains: the bucket under way is the last one. nil: it never does.
	Leaving func() bool
}

// answerWithin bounds the wait for the answer to a permit. The end of the attempt does not end it: a permit that is
// recorded counts, so what it permits is to be done.
const answerWithin = 5 * time.Second

// Attempt names an attempt of a work's own task, or of a worker.
type Attempt struct {
	Task    events.TaskID
	Started events.Ref
	Node    string
	Parent  events.TaskID // the task that has the work, of the attempt of a worker; "" = of that task
}

// Ledger implements workledger.Ledger for an attempt by commands to the owner of its shard.
type Ledger struct {
	asks    Asks
	attempt Attempt
	shard   int
	run     int64       // that Open has read; 0 = none
	stopped atomic.Bool // the work has told the attempt to stop
	tripped atomic.Bool // a counter has denied an item
}

// NewLedger returns the ledger of an attempt. It starts nothing.
func NewLedger(asks Asks, a Attempt) *Ledger {
	return &Ledger{
		asks:    asks,
		attempt: a,
		shard:   a.Task.Shard(asks.Shards),
	}
}

var _ workledger.Ledger = (*Ledger)(nil)

// Open implements workledger.Ledger. Where the work has stopped, or is gone, Next says so.
func (l *Ledger) Open(ctx context.Context, plan workledger.Plan) (workledger.Opened, error) {
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
		return workledger.Opened{}, err
	}
	if State(m.State) == Stop || m.Run == 0 {
		return workledger.Opened{Run: m.Run, Plan: plan}, nil
	}
	shown, err := l.asks.show(ctx, &Show{Task: string(of), Plan: true, Linear: true})
	if err != nil {
		return workledger.Opened{}, fmt.Errorf("reading the plan: %w", err)
	}
	l.run = shown.Run
	return opened(&shown)
}

// opened returns a run as it is recorded.
func opened(shown *Shown) (workledger.Opened, error) {
	all, err := decodePartitions(shown.Partitions)
	if err != nil {
		return workledger.Opened{}, fmt.Errorf("reading the partitions: %w", err)
	}
	o := workledger.Opened{
		Run:     shown.Run,
		Started: events.Millis(shown.PlannedAt).Time(),
		Plan:    workledger.Plan{Definition: shown.Definition},
	}
	for i := range all {
		p, err := planned(&all[i])
		if err != nil {
			return workledger.Opened{}, fmt.Errorf("reading the plan of partition %s: %w", all[i].ID, err)
		}
		o.Plan.Partitions = append(o.Plan.Partitions, p)
	}
	return o, nil
}

// recorded returns the partitions of a plan as events have them.
func recorded(plan *workledger.Plan) []events.WorkPartition {
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
			Rules:    encodeRules(p.Rules),

			Form:       events.WorkForm(p.Form),
			MovesToken: p.MovesToken,
		}
		for _, t := range p.Thresholds {
			all[i].Thresholds = append(all[i].Thresholds, events.WorkThreshold{Counter: t.Counter, Limit: uint64(t.Limit)})
		}
	}
	return all
}

// planned returns the partition that recorded has encoded.
func planned(p *events.WorkPartition) (workledger.PartitionPlan, error) {
	segments, err := decodeSegmentation(p.Segments)
	if err != nil {
		return workledger.PartitionPlan{}, fmt.Errorf("segmentation: %w", err)
	}
	rules, err := decodeRules(p.Rules)
	if err != nil {
		return workledger.PartitionPlan{}, fmt.Errorf("rules: %w", err)
	}
	plan := workledger.PartitionPlan{
		ID:           p.ID,
		Mode:         workledger.Mode(p.Mode),
		Form:         workledger.Form(p.Form),
		MovesToken:   p.MovesToken,
		Segmentation: segments,
		Buckets:      int64(p.Buckets),
		Workers:      int64(p.Workers),
		Threads:      int64(p.Threads),
		Rules:        rules,
	}
	for _, t := range p.Thresholds {
		plan.Thresholds = append(plan.Thresholds, workledger.Threshold{Counter: t.Counter, Limit: int64(t.Limit)})
	}
	return plan, nil
}

// Begin implements workledger.Ledger.
func (l *Ledger) Begin(ctx context.Context, b workledger.Beginning) error {
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

// Next implements workledger.Ledger. The end of the attempt returns its bucket, so nothing is sent for one that is
// given back.
func (l *Ledger) Next(ctx context.Context, r workledger.Report) (workledger.Answer, error) {
	r.Last = r.Last || l.asks.Leaving != nil && l.asks.Leaving()
	if l.stopped.Load() && r.Bucket == 0 || r.Returned || r.Last && r.Bucket == 0 {
		return workledger.Answer{State: workledger.Stopped}, nil
	}
	m, err := l.ask(ctx, l.report(&r))
	if err != nil || r.Last {
		return workledger.Answer{State: workledger.Stopped}, err
	}
	a := workledger.Answer{Partition: int(m.Partition) - 1}
	switch State(m.State) {
	case Go:
		a.State, a.Bucket = workledger.Working, int64(m.Bucket)
	case Wait:
		a.State = workledger.Waiting
	case Next:
		if a.State = workledger.Starting; l.attempt.Parent != "" { // the work's own task begins it
			a.State = workledger.Waiting
		}
	case Over:
		a.State = workledger.Finished
		if l.attempt.Parent == "" {
			a.Totals, err = l.totals(ctx)
		}
	default:
		a.State = workledger.Stopped
	}
	return a, err
}

// totals returns what became of the partitions of the run.
func (l *Ledger) totals(ctx context.Context) ([]workledger.Total, error) {
	shown, err := l.asks.show(ctx, &Show{Task: string(l.attempt.Task), Linear: true})
	if err != nil {
		return nil, fmt.Errorf("reading what the run has counted: %w", err)
	}
	all := make([]workledger.Total, len(shown.Parts))
	for i := range all {
		p := &shown.Parts[i]
		all[i].Buckets = int64(p.Done)
		all[i].Items = workledger.Counts{
			Done:    int64(p.ItemsDone),
			Failed:  int64(p.ItemsFailed),
			Skipped: int64(p.ItemsSkipped),
		}
	}
	return all, nil
}

// show reads a work.
func (a *Asks) show(ctx context.Context, q *Show) (shown Shown, err error) {
	answer, err := a.Read(ctx, q.Shard(a.Shards), q)
	if err == nil {
		err = answer.Err(events.TaskID(q.Task))
	}
	if err != nil {
		return shown, err
	}
	return command.ReadLenient[Shown](answer.Data)
}

// report returns the command that reports on a bucket.
func (l *Ledger) report(r *workledger.Report) *Bucket {
	c := &Bucket{
		Task:    string(l.attempt.Task),
		Started: uint64(l.attempt.Started),
		Node:    l.attempt.Node,
		Run:     l.run,
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

// Permit implements workledger.Ledger.
func (l *Ledger) Permit(ctx context.Context, a workledger.Ask) (bool, error) {
	if l.stopped.Load() {
		return false, l.refusal("")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	m, err := l.ask(ctx, &Permits{
		Task:    string(l.attempt.Task),
		Started: uint64(l.attempt.Started),
		Node:    l.attempt.Node,
		Counter: a.Counter,
		Items:   []uint64{a.Item},
		Reason:  a.Reason,
	})
	if err != nil {
		return false, err
	}
	if len(m.Granted) == 0 { // the owner did not come to ask the counter
		return false, l.refusal(m.Why)
	}
	if m.Granted[0]&1 == 0 {
		l.tripped.Store(true)
	}
	return m.Granted[0]&1 == 1, nil
}

// refusal returns the error of a permit that is not granted though no counter is at its limit.
func (l *Ledger) refusal(why string) error {
	if l.tripped.Load() {
		return nil
	}
	return fmt.Errorf("%s: %w", cmp.Or(why, "the work has stopped"), workledger.ErrOver)
}

// ask asks the owner.
func (l *Ledger) ask(ctx context.Context, c command.Command) (m moved, err error) {
	a, err := l.asks.Ask(ctx, l.shard, c)
	switch {
	case err != nil:
		return m, err
	case a.Code == command.AnswerStale:
		return m, workledger.ErrOver
	case a.Code != command.AnswerOK:
		return m, a.Err(l.attempt.Task)
	}
	if m, err = command.ReadLenient[moved](a.Data); err == nil && State(m.State) == Stop {
		l.stopped.Store(true)
	}
	return m, err
}
