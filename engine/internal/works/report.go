package works

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection/works"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work/progress"
	"taskledger/work/workledger"
)

// Look asks the owner of a task how far its work has come. With linear the answer reflects everything that was
// committed before the call.
func (a *Asks) Look(ctx context.Context, id events.TaskID, linear bool) (w progress.Work, err error) {
	q := &Show{Task: string(id), Linear: linear}
	if err := command.Check(q); err != nil {
		return w, err
	}
	answer, err := a.Read(ctx, id.Shard(a.Shards), q)
	if err == nil {
		err = answer.Err(id)
	}
	if errors.Is(err, task.ErrNotFound) && answer.Text != "" {
		err = &noWorkError{task: id, why: answer.Text}
	}
	if err != nil {
		return w, err
	}
	shown, err := command.ReadLenient[Shown](answer.Data)
	if err != nil {
		return w, fmt.Errorf("work of %s: %w", id, err)
	}
	return shown.report(a.Shards)
}

// noWorkError reports that a task is there, and has no work. It is task.ErrNotFound.
type noWorkError struct {
	task events.TaskID
	why  string
}

// Error implements error.
func (e *noWorkError) Error() string { return fmt.Sprintf("task %s %s", e.task, e.why) }

// Is tells that errors.Is finds task.ErrNotFound.
func (e *noWorkError) Is(target error) bool { return target == task.ErrNotFound }

// report returns what is told of a work, in a cluster of so many shards.
func (s *Shown) report(shards int) (w progress.Work, err error) {
	id := events.TaskID(s.Task)
	shard := uint16(id.Shard(shards))
	w = progress.Work{
		Task:       id,
		Version:    events.Position{Shard: shard, Ref: events.Ref(s.Version)},
		Behavior:   s.Own.Behavior,
		Status:     task.Status(s.Own.Status),
		At:         events.Millis(s.Now),
		Run:        s.Run,
		Definition: s.Definition,
		FailedOnly: s.Retried,
		Waits:      s.Asleep,
		Errors:     progress.ErrorTexts{Bytes: s.ErrorBytes, Limit: works.MaxErrorBytes},
		Permits:    progress.PermitCounts{Remembered: s.Permits, Uncertain: s.Uncertain},
		Open:       make([]progress.Bucket, 0, len(s.Open)),
		Partitions: make([]progress.Partition, 0, len(s.Parts)),
	}
	if s.Planned {
		w.PlannedAt = events.Millis(s.PlannedAt)
	}
	if s.Tried != 0 {
		w.Failing = &progress.Failing{Bucket: s.Tried, Attempts: s.TriedOften}
	}
	if len(s.Own.Failure) > 0 {
		if err := json.Unmarshal(s.Own.Failure, &w.Error); err != nil {
			return w, fmt.Errorf("failure of %s: %w", id, err)
		}
	}
	facts := progress.Facts{
		Planned:   s.Planned,
		Suspended: s.Own.Suspended,
		Final:     s.Own.Final || s.Own.Repeats,
		Cleared:   s.Cleared,
		Current:   int(s.Current),
		RateFrom:  events.Millis(s.Stream.RateFrom),
		Processed: s.Stream.Processed,
	}
	w.Stream = s.Stream.report()
	items := uint64(0)
	for i := range s.Open {
		w.Open = append(w.Open, s.Open[i].report(id, shard))
		items += s.Open[i].Items
	}
	for i := range s.Parts {
		p := s.Parts[i].report()
		p.Stream = s.Stream.formOf(i)
		if i+1 == facts.Current {
			p.Buckets.Open = uint64(len(s.Open))
			if p.Stream == "" || p.Stream == progress.Form(events.FormImprecise) { // else they count as they are processed
				p.Items.InOpen = items
			}
			facts.BusyFrom = events.Millis(s.Parts[i].BusyFrom)
		}
		w.Partitions = append(w.Partitions, p)
	}
	if next := int(s.Current); s.begins() {
		w.Partitions[next].BeginsSince = events.Millis(max(s.Own.StartedAt, s.PlannedAt, s.lastEnd()))
	}
	w.Workers = s.workers()
	w.Derive(facts)
	return w, nil
}

// begins reports whether an attempt of the task is about to begin the partition behind the current one.
func (s *Shown) begins() bool {
	if s.Current < 0 || s.Current >= int64(len(s.Parts)) || !s.Planned || s.Own.StartedAt == 0 || s.Own.Suspended {
		return false
	}
	return s.Current == 0 || s.Parts[s.Current-1].Ended != 0
}

// lastEnd returns when the current partition has ended; 0 = it has not, or there is none.
func (s *Shown) lastEnd() int64 {
	if s.Current == 0 {
		return 0
	}
	return s.Parts[s.Current-1].Ended
}

func (p *Part) report() progress.Partition {
	is := progress.Partition{
		ID:   p.ID,
		Mode: progress.Mode(events.WorkMode(p.Mode)),
		Buckets: progress.Buckets{
			Total:      p.Total,
			Done:       p.Done,
			Failed:     p.FailedBuckets,
			FailedSpan: p.Spanned,
		},
		Items:        progress.Items{Done: p.ItemsDone, Failed: p.ItemsFailed, Skipped: p.ItemsSkipped},
		StartedAt:    events.Millis(p.Started),
		EndedAt:      events.Millis(p.Ended),
		LastBucketAt: events.Millis(p.Moved),
		WallClockMs:  p.Busy,
		Workers:      p.Workers,
		Threads:      p.Threads,
	}
	if p.Counted {
		is.Items.Expected = &p.Expected
	}
	for _, c := range p.Counters {
		if strings.HasPrefix(c.Name, workledger.FailuresPrefix) { // the failure behind the limit stops the work
			c.Limit++
		}
		is.Thresholds = append(is.Thresholds, progress.Threshold{Counter: c.Name, Count: c.Count, Limit: c.Limit})
	}
	return is
}

func (o *Open) report(of events.TaskID, shard uint16) progress.Bucket {
	return progress.Bucket{
		Number:  o.Bucket,
		Worker:  o.Worker,
		Task:    events.WorkerID(of, uint32(o.Worker)),
		Attempt: events.Position{Shard: shard, Ref: events.Ref(o.Attempt)},
		Node:    store.NodeName(o.Node),
		Since:   events.Millis(o.Since),
		InOpen:  o.Items,
	}
}

// workers counts the workers, all together and by node.
func (s *Shown) workers() progress.Workers {
	w := progress.Workers{Ended: s.Kept, Nodes: []progress.Node{}}
	bySession := map[string]*progress.Node{}
	on := func(session string) *progress.Node {
		if bySession[session] == nil {
			bySession[session] = &progress.Node{Node: store.NodeName(session), Session: session}
		}
		return bySession[session]
	}
	runs := func(session string) {
		if session != "" {
			w.Running++
			on(session).Workers++
		}
	}
	if !s.Own.Final {
		w.Active++
	}
	runs(s.Own.Node)
	for i := range s.Workers {
		w.Active++
		runs(s.Workers[i].Node)
	}
	for i := range s.Open {
		if s.Open[i].Node != "" {
			on(s.Open[i].Node).Buckets++
		}
	}
	for _, n := range bySession {
		w.Nodes = append(w.Nodes, *n)
	}
	slices.SortFunc(w.Nodes, func(a, b progress.Node) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Session, b.Session))
	})
	return w
}
