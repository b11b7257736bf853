package works

import (
	"encoding/json"
	"strconv"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/works"
)

// tryAgain puts off what an owner does for works while there is no room.
const tryAgain events.Millis = 1000

// wants tells the owner to do something for a work.
type wants struct {
	wake   bool
	create int // workers
}

// wanted returns whether the work's own task is to be woken, and how many workers are to be created, so that every free
// bucket finds a worker, as far as the plan has as many.
func wanted(state *projection.Shard, of *works.Work, now events.Millis) (w wants) {
	parent := state.Task(of.ID)
	if over(parent) || parent.Suspended {
		return w
	}
	part, plan := of.Part()
	if part == nil { // its task plans a run, begins the next partition, or ends
		return wants{wake: of.Asleep || forgiven(of) && away(parent, now)}
	}
	if spent(of, &parent.Kind.Policy) != "" {
		return w
	}
	free, _ := of.Free()
	active, away := of.Active(), awayOf(state, of, now)
	if of.Has(1) != nil || !of.Asleep { // the work's own task is one of them
		active++
	}
	present := active - away
	idle := present - len(of.Open()) // they have no bucket, and ask for one once they start, or come again
	missing := min(int(min(free, events.MaxWorkers))-idle, int(plan.Workers)-present, 2*int(plan.Workers)-active)
	if missing <= 0 {
		return w
	}
	if of.Asleep {
		w.wake = true
		missing--
	}
	w.create = missing
	return w
}

// forgiven reports whether no attempt of a work's own task counts that has failed or was lost, since a bucket has ended
// after it.
func forgiven(of *works.Work) bool {
	own := of.Worker(1)
	return own != nil && own.Lost == 0 && own.Failed == 0
}

// away reports whether a task waits after a loss for longer than a bucket may wait for its next worker. A task that has
// failed, snoozes or was released waits for another reason.
func away(t *projection.Task, now events.Millis) bool {
	return t != nil && t.Wait != nil && t.Wait.Cause == events.KindLost &&
		t.Phase() == projection.Waiting && t.Due > now+tryAgain
}

// awayOf counts the workers of a work, the work's own task included, that are away. They are not waited for. Those that
// wait after a failure are: that is the policy's back-off.
func awayOf(state *projection.Shard, of *works.Work, now events.Millis) (n int) {
	if !of.Asleep && away(state.Task(of.ID), now) {
		n++
	}
	for _, w := range of.Workers() {
		if w.Active && away(state.Task(w.ID), now) {
			n++
		}
	}
	return n
}

// createWorkers creates so many workers of a work, as far as there is room, and returns how many it has created.
func createWorkers(d *command.Decider, of *works.Work, n int) (created int) {
	parent := d.State.Task(of.ID)
	params := workerParams(of.ID)
	number := of.Last()
	for created < n && d.Err == nil && !d.EntryFull() {
		if _, refused := d.MayCreate(len(params)); refused {
			return created
		}
		for number++; d.State.Task(events.WorkerID(of.ID, number)) != nil; number++ {
		}
		policy := parent.Kind.Policy
		policy.Every = 0
		d.Create(events.WorkerID(of.ID, number), &events.Created{
			Behavior:  parent.Kind.Behavior,
			Policy:    policy,
			Priority:  parent.Priority,
			NotBefore: d.Now,
			Params:    params,
			Ties: events.Ties{
				Parent: of.ID,
				Group:  string(of.ID),
				By:     parent.Kind.Creator,
			},
		})
		created++
	}
	return created
}

// workerParams returns the parameters of a worker.
func workerParams(of events.TaskID) events.Payload {
	return events.JSON([]byte(`{"worker_of":` + strconv.Quote(string(of)) + `}`))
}

// WorkerOf returns the task that parameters say to be a worker of; "" = of none.
func WorkerOf(params []byte) events.TaskID {
	var p struct {
		WorkerOf events.TaskID `json:"worker_of"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	return p.WorkerOf
}
