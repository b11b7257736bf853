package worker

import (
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/events"
)

// progressReporter sends the first report of an attempt at once and then the latest one every progressEvery, once
// the one before is answered: while nobody owns the shard they would pile up.
type progressReporter struct {
	mu      sync.Mutex
	last    time.Time
	pending *events.Progressed
	timer   *time.Timer
	asking  bool
	stopped bool
}

// noProgress is the reporter of every attempt that came to its outcome without a report.
var noProgress = &progressReporter{stopped: true}

// reportProgress is Attempt.Progress.
func (a *attempt) reportProgress(done, total int64, note string) {
	if a.progress.Load() == nil {
		a.progress.CompareAndSwap(nil, new(progressReporter))
	}
	p := a.progress.Load()
	a.changeProgress(p, func() {
		p.pending = &events.Progressed{Done: done, Total: total, Note: events.Head(note, events.MaxNameBytes)}
	})
}

// changeProgress changes the reporter, unless it has stopped, and sends the latest report as soon as it may leave.
// It is not locked while it sends, which may wait for the bus.
func (a *attempt) changeProgress(p *progressReporter, change func()) {
	p.mu.Lock()
	if !p.stopped {
		change()
	}
	leaves := a.queueLocked(p)
	p.mu.Unlock()
	if leaves {
		a.x.cfg.Sender.Flush(a.shard, command.LaneWork)
	}
}

// queueLocked puts the latest report into its lane, where no outcome gets ahead of it. It reports false while it
// may not leave.
func (a *attempt) queueLocked(p *progressReporter) bool {
	if p.stopped || p.pending == nil || p.asking || p.timer != nil {
		return false
	}
	if wait := progressEvery - time.Since(p.last); wait > 0 {
		p.timer = time.AfterFunc(wait, func() { a.changeProgress(p, func() { p.timer = nil }) })
		return false
	}
	c := &command.Progress{
		Task:     a.Task,
		Started:  a.Started,
		Node:     a.session.ID,
		Progress: *p.pending,
	}
	p.pending, p.last, p.asking = nil, time.Now(), true
	a.x.cfg.Sender.Later(a.shard, c, sender.WaiterFunc(func(command.Answer, error) { // nobody waits for its answer
		a.changeProgress(p, func() { p.asking = false })
	}))
	return true
}

// stopProgress lets no report follow the outcome.
func (a *attempt) stopProgress() {
	if a.progress.CompareAndSwap(nil, noProgress) {
		return
	}
	p := a.progress.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
