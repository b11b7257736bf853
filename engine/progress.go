package engine

import (
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// progressReporter sends the first report of an attempt at once and then the latest one every progressEvery, once the one before is
// answered: while nobody owns the shard they would pile up.
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	report := &events.Progressed{Done: done, Total: total, Note: note[:min(len(note), events.MaxNameBytes)]}
	p.pending = report
	a.nextProgress(p)
}

// nextProgress sends the latest report as soon as it may leave. The caller holds the lock.
func (a *attempt) nextProgress(p *progressReporter) {
	if p.stopped || p.pending == nil || p.asking || p.timer != nil {
		return
	}
	if wait := progressEvery - time.Since(p.last); wait > 0 {
		p.timer = time.AfterFunc(wait, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.timer = nil
			a.nextProgress(p)
		})
		return
	}
	c := &command.Progress{Task: a.Task, Started: a.Started, Node: a.m.session.ID, Progress: *p.pending}
	p.pending, p.last, p.asking = nil, time.Now(), true
	a.m.router.send(a.shard, command.LaneWork, c, callback(func(command.Answer, error) { // what became of it concerns nobody
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asking = false
		a.nextProgress(p)
	}))
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
