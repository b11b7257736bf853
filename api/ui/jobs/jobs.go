// Package jobs runs changes of all tasks that a filter selects, in the memory of one node, for pages that begin them
// and look on: a job outlives the request that began it, and ends with its node. A job that has ended is kept for an
// hour.
package jobs

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"taskledger/api"
)

// Bounds of jobs. Where there is no room for another one that is kept, the one that ended first goes. Each that runs is
// a stream of the API, which has two for a principal and eight for all: the others are left to the pages of those who
// look on, as the audit and downloads are streams, too.
const (
	Keeps     = time.Hour // after its end
	mostRun   = 4         // at once, of all principals
	mostOfOne = 1         // at once, of one principal
	mostKept  = 200       // that run or have ended
	mostHeld  = 20        // of those of one principal
)

// stopsWithin bounds how long a job that is stopped goes on, for the tasks that it changes at that moment: what becomes
// of those is then known.
const stopsWithin = 5 * time.Second

// The reasons why no job begins.
var (
	ErrTooMany    = errors.New("so many changes run already: wait for the end of one, or stop it")
	ErrNotRunning = errors.New("this node begins no changes now: it starts, or it ends")
)

// The reasons why a job was ended.
var (
	errStopped  = errors.New("somebody has stopped it")
	errNodeEnds = errors.New("its node has ended")
)

// Caller sends a question to the API, and gives each line of the answer to take; *api.Client is one.
type Caller interface {
	Lines(ctx context.Context, q api.Question, take func(line []byte) error) error
}

// Jobs holds the jobs of one node. Its methods may be called concurrently.
type Jobs struct {
	now func() time.Time

	mu      sync.Mutex
	all     []*job          // in the order in which they began
	running context.Context // of Run; nil = it does not run
	under   sync.WaitGroup  // of jobs that have not ended
}

// New returns Jobs without a job; now tells the time, nil = time.Now. Until Run is called no job begins, and Begin
// returns ErrNotRunning.
func New(now func() time.Time) *Jobs {
	if now == nil {
		now = time.Now
	}
	return &Jobs{now: now}
}

// Run lets jobs begin until ctx ends. It then ends those that run, waits for them, and returns nil.
func (j *Jobs) Run(ctx context.Context) error {
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	j.mu.Lock()
	j.running = running
	j.mu.Unlock()
	<-ctx.Done()
	j.mu.Lock()
	j.running = nil
	j.mu.Unlock()
	end(errNodeEnds)
	j.under.Wait()
	return nil
}

// Begin begins to change tasks for a principal, and returns the id of the job. An order is carried out once: a second
// one with the same key, which is not empty, has the id of the first one, unless that has failed before its first task.
func (j *Jobs) Begin(principal string, by Caller, o Order) (id string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forgetLocked()
	run, runOfOne := 0, 0
	for _, other := range j.all {
		tried := other.state == Failed && other.report.Matched == 0
		if other.principal == principal && o.Key != "" && other.order.Key == o.Key && !tried {
			return other.id, nil
		}
		if other.ended.IsZero() {
			run++
			if other.principal == principal {
				runOfOne++
			}
		}
	}
	switch {
	case j.running == nil:
		return "", ErrNotRunning
	case run >= mostRun || runOfOne >= mostOfOne:
		return "", ErrTooMany
	}
	ctx, stop := context.WithCancelCause(j.running)
	one := &job{
		id:        rand.Text(),
		principal: principal,
		order:     o,
		began:     j.now(),
		stop:      stop,
	}
	one.report.Cursor = o.Cursor // it is there until it tells of more
	j.all = append(j.all, one)
	j.under.Go(func() {
		defer stop(nil)
		j.run(ctx, one, by)
	})
	return one.id, nil
}

// forgetLocked removes the jobs that ended long ago, and the first that ended where there are too many.
func (j *Jobs) forgetLocked() {
	now := j.now()
	j.all = slices.DeleteFunc(j.all, func(one *job) bool {
		return !one.ended.IsZero() && now.Sub(one.ended) >= Keeps
	})
	of := map[string]int{}
	for _, one := range j.all {
		of[one.principal]++
	}
	ended := slices.DeleteFunc(slices.Clone(j.all), func(one *job) bool { return one.ended.IsZero() })
	slices.SortStableFunc(ended, func(a, b *job) int { return a.ended.Compare(b.ended) })
	goes := map[*job]bool{}
	for _, one := range ended {
		if len(j.all)-len(goes) >= mostKept || of[one.principal] >= mostHeld {
			goes[one] = true
			of[one.principal]--
		}
	}
	j.all = slices.DeleteFunc(j.all, func(one *job) bool { return goes[one] })
}

// Get shows a job of a principal. It reports false for one that is another's, was forgotten, or never was.
func (j *Jobs) Get(principal, id string) (Job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forgetLocked()
	for _, one := range j.all {
		if one.principal == principal && one.id == id {
			return one.shown(), true
		}
	}
	return Job{}, false
}

// List shows the jobs of a principal, the newest first.
func (j *Jobs) List(principal string) (all []Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forgetLocked()
	for _, one := range slices.Backward(j.all) {
		if one.principal == principal {
			all = append(all, one.shown())
		}
	}
	return all
}

// Stop ends a job of a principal, once the page of tasks that it changes now is done, or within stopsWithin. It reports
// false for one that Get does not show.
func (j *Jobs) Stop(principal, id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range j.all {
		if one.principal == principal && one.id == id {
			if !one.stopping {
				one.stopping = true
				time.AfterFunc(stopsWithin, func() { one.stop(errStopped) })
			}
			return true
		}
	}
	return false
}
