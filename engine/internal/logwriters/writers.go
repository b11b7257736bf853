// Package logwriters writes the logs of the attempts of a node. A log has a writer, and a goroutine, from its first
// line until its lines are stored, and a node has so many writers at most.
package logwriters

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"taskledger/engine/internal/notice"
	"taskledger/meter"
	"taskledger/tasklog"
)

// MaxWriters bounds the writers of a node, those included that store what is left of attempts which have ended. Each
// holds a few KiB, and 1 MiB of lines while the store takes nothing: together that is 1 GiB at worst. An attempt of
// a line has a writer until the store has answered, so these many bridge a second of functionBatches.
const MaxWriters = 1024

// Config says where the lines of a node go. Meter may be nil.
type Config struct {
	To    tasklog.Store
	Meter meter.Meter
	Log   *slog.Logger
}

// Writers makes the writers of a node.
type Writers struct {
	to      *watched
	meter   meter.Meter
	notices *notice.Log
	ctx     context.Context // ends all writers
	cancel  context.CancelFunc
	running sync.WaitGroup
	marks   *marks

	mu      sync.Mutex
	open    int // writers that run
	demand  demand
	stopped bool
}

// New returns the writers of a node, which end with ctx, or by Stop. It starts nothing.
func New(ctx context.Context, cfg Config) *Writers {
	ws := &Writers{
		to: &watched{
			Store: cfg.To,
			pace:  rate.NewLimiter(functionBatches, functionBatches/10),
		},
		meter:   cfg.Meter,
		notices: notice.New(cfg.Log),
	}
	ws.demand = demand{pace: ws.to.pace, since: time.Now()}
	ws.ctx, ws.cancel = context.WithCancel(ctx)
	ws.marks = &marks{ctx: ws.ctx, stopping: make(chan struct{}), running: &ws.running}
	return ws
}

// Of returns the log of an attempt, of which there must be no other one. It costs nothing more until a line is
// written.
func (ws *Writers) Of(of tasklog.Attempt) *Log { return &Log{writers: ws, of: of} }

// Stop makes no more writers, gives those that run a time to store what is left, and ends them. It returns when none
// is left.
func (ws *Writers) Stop(most time.Duration) {
	ws.mu.Lock()
	if !ws.stopped {
		ws.stopped = true
		close(ws.marks.stopping)
	}
	ws.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		ws.running.Wait()
		close(idle)
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-idle:
	case <-late.C:
	}
	ws.cancel()
	<-idle
}

// begin runs the writer of a log, which goes on after so many lines that were dropped; nil where no further one may
// run. done is closed when it has ended.
func (ws *Writers) begin(l *Log, dropped uint64) (w *tasklog.Writer, done chan struct{}) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.demand.begins()
	if ws.stopped || ws.open >= MaxWriters {
		return nil, nil
	}
	w, err := tasklog.NewWriter(paced{ws.to, l}, l.of)
	if err != nil { // there is no such attempt
		return nil, nil
	}
	ws.open++
	w.Skip(dropped)
	if ws.to.away() {
		w.SupposeAway()
	}
	done = make(chan struct{})
	ws.running.Go(func() {
		defer close(done)
		ws.ended(l, w, w.Run(ws.ctx))
	})
	return w, done
}

// ended takes the end of a writer.
func (ws *Writers) ended(l *Log, w *tasklog.Writer, err error) {
	ws.mu.Lock()
	ws.open--
	ws.mu.Unlock()
	l.countDropped(w)
	if w.Untold() {
		l.marks.Store(true)
		ws.marks.add(w)
	}
	if err != nil {
		ws.notices.Say(slog.LevelWarn, "lines of a task's log are lost", "err", err)
	}
}

// lost takes the end of a log that has never had a writer, and so many lines that were dropped. Once the node stops
// nothing begins any more, since nobody would wait for it.
func (ws *Writers) lost(l *Log, dropped uint64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.stopped || ws.marks.full() {
		return
	}
	if w, err := tasklog.NewWriter(paced{ws.to, l}, l.of); err == nil {
		w.Skip(dropped)
		l.marks.Store(true)
		ws.marks.add(w)
	}
}

func (ws *Writers) count(c meter.Counter, lines uint64) {
	if ws.meter != nil && lines > 0 {
		ws.meter.Count(c, "", int64(lines))
	}
}
