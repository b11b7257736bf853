package sync

import (
	"errors"
	"net/http"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/collections"
	"taskledger/collections/taskjson"
	"taskledger/schedule"
)

// Ordered names a run.
type Ordered struct {
	TaskID string `json:"task_id"`
}

// Cancelled is the answer to a run that was cancelled. An attempt that goes on ends within moments.
type Cancelled struct {
	Status string `json:"status"` // ok
}

// isForRuns returns an error unless the token of the caller is for runs of collections. Whoever asks for one here
// chooses nothing of what it does: the role of the route is enough, where a submit needs role operator.
func isForRuns(c *api.Call) error {
	if !c.Token().MayBehavior(collections.Behavior) {
		return problem.New(problem.Forbidden, "the token is not for the behavior %s", collections.Behavior)
	}
	return nil
}

// ByHand is the base of the priority of a run that a caller asks for. Runs of ticks have 200 where no file says more.
const ByHand = collections.AskedPriority

// attempts bounds how often a change is asked for while the definition of a collection changes.
const attempts = 3

// run makes a run, or tells the one that has not ended.
func (f *front) run(c *api.Call) error {
	key, err := c.Key()
	if err != nil {
		return err
	}
	p := pair{c.Param("source"), c.Param("collection")}
	switch {
	case p.source == "":
		return invalid("source", "it is required")
	case p.collection == "":
		return invalid("collection", "it is required")
	}
	if err := isForRuns(c); err != nil {
		return err
	}
	var run operations.Handle
	found, err := f.change(c, p, func(s *schedule.Schedule) (err error) {
		run, err = f.schedules.RunWith(c.Context(), s.Name, schedule.ByHand{Key: key, Priority: ByHand}, s.Version)
		return err
	})
	switch {
	case err != nil:
		return err
	case !found:
		if _, err := f.pairs(c, p.source); err != nil {
			return err
		}
		return unknown("collection", p.collection)
	}
	shown, err := taskjson.Shown(run.ID())
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !run.Joined() || run.Repeated() { // this request has made it, or the one that it repeats
		status = http.StatusCreated
	}
	return c.JSON(status, Ordered{shown})
}

// change does something to a collection as it is found, and again if its definition has changed meanwhile.
func (f *front) change(c *api.Call, p pair, do func(*schedule.Schedule) error) (found bool, err error) {
	for range attempts {
		var s schedule.Schedule
		if s, found, err = f.find(c.Context(), c.Token(), p); err != nil || !found {
			return found, err
		}
		err = do(&s)
		switch {
		case errors.Is(err, schedule.ErrNotFound):
			return false, nil
		case !errors.Is(err, schedule.ErrChanged):
			return true, err
		}
	}
	return true, problem.New(problem.State, "the definition of the collection changes all the time")
}

func (f *front) cancel(c *api.Call) error {
	if err := isForRuns(c); err != nil {
		return err
	}
	t, id, err := f.get(c)
	if err != nil {
		return err
	}
	if s := taskjson.StatusOf(t.Status, t.Substatus); s.Final() {
		return problem.New(problem.State, "task %s has ended: it is %s", c.Path("task"), s)
	}
	if _, err := f.runs.Operate(c.Context(), operations.Cancel, string(id), ""); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, Cancelled{"ok"})
}

// steer returns the handler of a verb.
func (f *front) steer(verb operations.ScheduleVerb) func(*api.Call) error {
	return func(c *api.Call) error {
		if err := isForRuns(c); err != nil {
			return err
		}
		p := pair{c.Path("source"), c.Path("collection")}
		found, err := f.change(c, p, func(s *schedule.Schedule) error {
			return f.schedules.Steer(c.Context(), verb, s.Name, "", s.Version)
		})
		if err == nil && !found {
			err = notThere(p)
		}
		if err != nil {
			return err
		}
		s, found, err := f.find(c.Context(), c.Token(), p)
		if err == nil && !found {
			err = notThere(p)
		}
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, scheduleOf(p, &s))
	}
}

func notThere(p pair) error {
	return problem.New(problem.NotFound, "there is no collection %.64q of the source %.64q", p.collection, p.source)
}
