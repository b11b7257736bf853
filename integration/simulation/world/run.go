package world

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"taskledger/integration/robustness/history"
	"taskledger/task"
)

const (
	// hearWithin bounds the time after the last fault and the last call within which whoever waits for a task must have
	// been told of its end: longer than the longest time between two questions.
	hearWithin = 65 * time.Second
	// stillFor is the time without any change after which nothing is under way: longer than a message takes.
	stillFor = 3500 * time.Millisecond
)

// Run makes the history of a seed. The error says that the simulation itself failed.
func Run(seed uint64) (*history.Run, error) {
	w := newWorld(seed)
	quiet := goroutines()
	if err := w.populate(); err != nil {
		return nil, err
	}
	stopClock := w.beginClock()
	var both sync.WaitGroup
	both.Go(w.traffic)
	w.faults()
	if w.long {
		both.Wait()
		w.quiet()
	}
	w.record.Run.Info.Healed = w.record.Now()
	both.Wait()
	err := w.settle()
	w.hear()
	err = errors.Join(err, w.collect())
	w.depart()
	stopClock()
	w.remains(quiet)
	run := &w.record.Run
	run.Info.End, run.Info.EndWall = w.record.Now(), time.Now().UnixMilli()
	return run, err
}

// populate begins all processes, and returns when the nodes are ready.
func (w *world) populate() error {
	for i := range w.nodes {
		p, err := w.begin(fmt.Sprintf("node-%d", i), true)
		if err != nil {
			return err
		}
		w.nodes[i] = p
	}
	for i := range w.clients {
		p, err := w.begin(fmt.Sprintf("client-%d", i), false)
		if err != nil {
			return err
		}
		w.clients[i] = p
	}
	for _, p := range w.nodes {
		select {
		case <-p.node.Ready():
		case <-time.After(beginWithin):
			return fmt.Errorf("%s is not ready", p.name)
		}
	}
	return nil
}

// settle waits until every late request has arrived, every node is ready, every task that can has ended, and nothing
// has changed for a while. It records damage when that does not come.
func (w *world) settle() error {
	w.late.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), w.settleWithin())
	defer cancel()
	for _, p := range w.nodes {
		if p == nil { // it did not begin again
			continue
		}
		select {
		case <-p.node.Ready():
		case <-ctx.Done():
			w.record.Damage(ended, "%s is not ready %s after the faults", p.name, w.settleWithin())
		}
	}
	var before uint64
	for last := time.Now(); time.Since(last) < stillFor; {
		tasks, err := w.tasks(ctx)
		w.endRepetitions(tasks)
		w.endSchedules(ctx)
		if events := eventsOf(tasks); err != nil || len(stillWaiting(tasks, w.record.IsFilled())) > 0 || events != before {
			last, before = time.Now(), events
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("the cluster does not settle: %w", err)
			}
			waiting := stillWaiting(tasks, w.record.IsFilled())
			w.record.Damage(ended, "%s after the faults tasks have not ended, or go on: %s", w.settleWithin(), waiting)
			return nil
		}
	}
	return nil
}

// endRepetitions cancels the tasks that would go on for ever.
func (w *world) endRepetitions(tasks []task.Task) {
	for i := range tasks {
		if t := &tasks[i]; t.Details.Policy.Every != 0 && !t.Final() && !t.Suspended && !t.Cancelled {
			w.caller().operate(w.clients[0], history.Cancel, string(t.ID))
		}
	}
}

// hear lets callers hear of the futures for which they wait. A caller that hears nothing, although nothing happens any
// more, gives up.
func (w *world) hear() {
	timer := time.AfterFunc(hearWithin, w.giveUp)
	defer timer.Stop()
	w.waits.Wait()
}

// depart stops everybody in order and lets leases end.
func (w *world) depart() {
	w.late.Wait()
	var all sync.WaitGroup
	for _, p := range w.everybody() {
		all.Go(func() {
			p.leave()
			if p.err != nil {
				w.record.Damage(clean, "%s left with an error, in order and without a fault: %v", p.name, p.err)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.swept[p.port.mail()] = w.etcd.Revision() // what was under way may still arrive
		})
	}
	all.Wait()
	w.giveUp()
	w.late.Wait()
	w.bus.wait()
	time.Sleep(ttl + 2*time.Second)
}
