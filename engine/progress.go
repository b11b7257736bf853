package engine

import (
	"sync"
	"time"

	"taskledger/events"
)

// progressReporter sends the first report of an attempt at once and then the latest one every progressEvery.
type progressReporter struct {
	mu      sync.Mutex
	last    time.Time
	pending *events.Progressed
	timer   *time.Timer
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
	wait := progressEvery - time.Since(p.last)
	if wait <= 0 {
		p.pending, p.last = nil, time.Now()
		a.sendProgress(report)
		return
	}
	if p.pending = report; p.timer == nil {
		p.timer = time.AfterFunc(wait, func() { a.flushProgress() })
	}
}

func (a *attempt) flushProgress() {
	p := a.progress.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if p.pending == nil || p.stopped {
		return
	}
	a.sendProgress(p.pending)
	p.pending, p.last = nil, time.Now()
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

// sendProgress asks the owner to record a report. What becomes of it concerns nobody: a later one, or the outcome, comes.
func (a *attempt) sendProgress(report *events.Progressed) {
	a.m.router.send(a.shard, laneWork, &progressCommand{a.Task, a.Started, a.m.session.ID, *report}, nil)
}
