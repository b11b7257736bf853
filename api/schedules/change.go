package schedules

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/schedule"
	"taskledger/store"
)

// Set is the answer to a definition.
type Set struct {
	Version schedule.Version `json:"version"`
	Changed bool             `json:"changed"` // false = the schedule had an equal definition
}

// Range gives the ticks of a backfill, both ends inclusive.
type Range struct {
	From time.Time `json:"from"` // RFC 3339
	To   time.Time `json:"to"`
}

// Backfill is a backfill that has begun.
type Backfill struct {
	Ticks int `json:"ticks"` // counts those that have their runs, one after the other
}

func (f *front) set(c *api.Call) error {
	var body schedule.Form
	if err := c.Read(&body); err != nil {
		return err
	}
	d := body.Definition()
	var err error
	if d.UUIDs, err = c.Flag("uuids"); err != nil {
		return err
	}
	if string(d.Params) == "null" {
		d.Params = nil
	}
	seen, err := seenBy(c)
	if err == nil {
		err = c.MaySubmit(d.Behavior)
	}
	if err != nil {
		return err
	}
	name := c.Path("name")
	was, err := f.schedules.Get(c.Context(), name)
	made := errors.Is(err, schedule.ErrNotFound)
	if err == nil {
		err = mayReplace(c, &was)
	}
	if err != nil && !made {
		return err
	}
	judged := was.Version
	if made {
		judged = schedule.Absent
	}
	v, changed, err := f.schedules.SetWith(c.Context(), name, d, schedule.Setting{
		Seen:   cmp.Or(seen, judged),
		Reason: c.Param("reason"),
	})
	if err != nil {
		return unmatched(err, seen)
	}
	tag(c, v)
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	return c.JSON(status, Set{v, changed})
}

// seenBy returns the version that the caller has seen, by the header If-Match; 0 = it names none.
func seenBy(c *api.Call) (schedule.Version, error) {
	tag, err := c.Match()
	if tag == "" || err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(tag, 10, 64)
	if err != nil || n == 0 {
		return 0, &store.InvalidError{Field: "If-Match", Problem: "want the ETag of a schedule"}
	}
	return schedule.Version(n), nil
}

// mayReplace returns an error unless the caller may put another definition in the place of one.
func mayReplace(c *api.Call, was *schedule.Schedule) error {
	if !isFor(c.Token(), was) {
		return problem.New(problem.State, "the name is taken, by a schedule that the token is not for")
	}
	return c.MaySubmit(was.Definition.Behavior)
}

// versions returns the version that the caller has seen, 0 = it names none, and the one as which the schedule was
// judged: an error unless the caller may submit tasks of the behavior that it has.
func (f *front) versions(c *api.Call) (seen, judged schedule.Version, err error) {
	if seen, err = seenBy(c); err != nil {
		return 0, 0, err
	}
	s, err := f.get(c)
	if err != nil {
		return 0, 0, err
	}
	return seen, s.Version, c.MaySubmit(s.Definition.Behavior)
}

// unmatched returns the error of a change that came after another one. Where the caller gave no condition, none has
// failed: the schedule was judged as it was before.
func unmatched(err error, seen schedule.Version) error {
	if errors.Is(err, schedule.ErrChanged) && seen == 0 {
		p := problem.New(problem.State, "%s", err)
		p.Changed = true
		return p
	}
	return err
}

// steer returns the handler of a verb.
func (f *front) steer(verb operations.ScheduleVerb) func(*api.Call) error {
	return func(c *api.Call) error {
		var why api.Reason
		if err := c.ReadOptional(&why); err != nil {
			return err
		}
		seen, judged, err := f.versions(c)
		if err != nil {
			return err
		}
		reason := cmp.Or(why.Reason, c.Param("reason"))
		err = f.schedules.Steer(c.Context(), verb, c.Path("name"), reason, cmp.Or(seen, judged))
		if err != nil {
			return unmatched(err, seen)
		}
		return c.Done()
	}
}

func (f *front) run(c *api.Call) error {
	key, err := c.Key()
	if err != nil {
		return err
	}
	priority, err := c.Number("priority", 0, 1, math.MaxInt)
	if err != nil {
		return err
	}
	seen, judged, err := f.versions(c)
	if err != nil {
		return err
	}
	is := schedule.ByHand{Key: key, Priority: int64(priority)}
	h, err := f.schedules.RunWith(c.Context(), c.Path("name"), is, cmp.Or(seen, judged))
	if err != nil {
		return unmatched(err, seen)
	}
	answer := api.Submitted{Joined: h.Joined()}
	answer.ID = h.ID()
	c.Header().Set("Location", "/v1/tasks/"+strings.Replace(string(answer.ID), "/", "~", 1))
	c.Header().Set("Retry-After", "1")
	return c.JSON(http.StatusAccepted, answer)
}

func (f *front) backfill(c *api.Call) error {
	var r Range
	if err := c.Read(&r); err != nil {
		return err
	}
	if r.To.IsZero() {
		return &store.InvalidError{Field: "to", Problem: "want a time such as 2026-11-21T12:00:00Z"}
	}
	seen, judged, err := f.versions(c)
	if err != nil {
		return err
	}
	n, err := f.backfills.Backfill(c.Context(), c.Path("name"), r.From, r.To, cmp.Or(seen, judged))
	if err != nil {
		return unmatched(err, seen)
	}
	return c.JSON(http.StatusOK, Backfill{n})
}
