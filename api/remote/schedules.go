package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// maxSchedules bounds the schedules of a page of the API.
const maxSchedules = 100

// schedules implements operations.Schedules and operations.Backfills.
type schedules struct {
	*link
	submitter submitter
}

// change returns a request to a schedule, which must have a version if seen is not 0.
func (s schedules) change(does, method, name, below string, seen schedule.Version) (request, error) {
	if err := events.ValidateSchedule(name); err != nil {
		return request{}, fmt.Errorf("%s: %w", does, &store.InvalidError{Field: "name", Problem: err.Error()})
	}
	q := request{
		does:   does + " schedule " + name,
		method: method,
		path:   "/v1/schedules/" + url.PathEscape(name) + below,
		header: http.Header{},
	}
	if seen != 0 {
		q.header.Set("If-Match", strconv.Quote(strconv.FormatUint(uint64(seen), 10)))
	}
	return q, nil
}

// SetWith implements operations.Schedules.
func (s schedules) SetWith(
	ctx context.Context, name string, d schedule.Definition, how schedule.Setting,
) (v schedule.Version, changed bool, err error) {
	q, err := s.change("set", http.MethodPut, name, "", how.Seen)
	if err != nil {
		return 0, false, err
	}
	params := d.Params
	d.Params = nil
	if q.body, err = withParams(d, params); err != nil {
		return 0, false, fmt.Errorf("%s: %w", q.does, err)
	}
	query := newParams()
	query.text("reason", how.Reason)
	query.flag("uuids", d.UUIDs)
	q.query = query.Values
	var told struct {
		Version schedule.Version `json:"version"`
		Changed bool             `json:"changed"`
	}
	_, err = s.ask(ctx, q, &told)
	return told.Version, told.Changed, err
}

// Get implements operations.Schedules.
func (s schedules) Get(ctx context.Context, name string) (is schedule.Schedule, err error) {
	q, err := s.change("show", http.MethodGet, name, "", 0)
	if err == nil {
		_, err = s.ask(ctx, q, &is)
	}
	return own(is), err
}

// List implements operations.Schedules.
func (s schedules) List(
	ctx context.Context, f schedule.Filter, after string, limit int,
) (all []schedule.Schedule, more bool, err error) {
	if limit < 1 || limit > maxSchedules {
		err := &task.LimitError{Field: "limit", Limit: maxSchedules, Got: int64(limit)}
		return nil, false, fmt.Errorf("list schedules: %w", err)
	}
	query := newParams()
	query.text("prefix", f.Prefix)
	query.text("behavior", f.Behavior)
	query.flag("paused", f.Paused)
	query.text("after", after)
	query.number("limit", int64(limit))
	var told struct {
		Schedules []schedule.Schedule `json:"schedules"`
		Next      string              `json:"next"`
	}
	_, err = s.ask(ctx, request{
		does:   "list schedules",
		method: http.MethodGet,
		path:   "/v1/schedules",
		query:  query.Values,
		most:   pageBytes,
	}, &told)
	for i := range told.Schedules {
		told.Schedules[i] = own(told.Schedules[i])
	}
	return told.Schedules, told.Next != "", err
}

// own returns a schedule as the engine has it, of how the API shows it.
func own(shown schedule.Schedule) schedule.Schedule {
	shown.Definition.UUIDs, shown.UUIDs = shown.UUIDs, false
	return shown
}

// Steer implements operations.Schedules.
func (s schedules) Steer(
	ctx context.Context, verb operations.ScheduleVerb, name, reason string, seen schedule.Version,
) error {
	method, below, query := http.MethodPost, "/"+string(verb), newParams()
	var body []byte
	var err error
	switch verb {
	case operations.PauseSchedule:
		body, err = encode(api.Reason{Reason: reason})
	case operations.ResumeSchedule:
	case operations.DeleteSchedule:
		method, below = http.MethodDelete, ""
	case operations.EndBackfill:
		method, below = http.MethodDelete, "/backfill"
		query.text("reason", reason)
	default:
		err = fmt.Errorf("verb %q is unknown", verb)
	}
	if err != nil {
		return err
	}
	q, err := s.change(string(verb), method, name, below, seen)
	if err != nil {
		return err
	}
	q.query, q.body = query.Values, body
	_, err = s.ask(ctx, q, nil)
	return err
}

// RunWith implements operations.Schedules.
func (s schedules) RunWith(
	ctx context.Context, name string, is schedule.ByHand, seen schedule.Version,
) (operations.Handle, error) {
	fail := func(err error) (operations.Handle, error) { return &handle{failed: err}, err }
	q, err := s.change("run", http.MethodPost, name, "/run", seen)
	if err != nil {
		return fail(err)
	}
	key, err := keyed(is.Key)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", q.does, err))
	}
	for field, value := range key {
		q.header[field] = value
	}
	query := newParams()
	query.number("priority", is.Priority)
	q.query = query.Values
	var told api.Submitted
	if _, err := s.ask(ctx, q, &told); err != nil {
		return fail(err)
	}
	return s.submitter.submitted(told.ID, told.Joined, told.Repeated), nil
}

// Backfill implements operations.Backfills.
func (s schedules) Backfill(
	ctx context.Context, name string, from, to time.Time, seen schedule.Version,
) (ticks int, err error) {
	q, err := s.change("backfill", http.MethodPost, name, "/backfill", seen)
	if err != nil {
		return 0, err
	}
	if from.IsZero() || to.IsZero() {
		err := &store.InvalidError{Field: "from", Problem: "want two times"}
		return 0, fmt.Errorf("%s: %w", q.does, err)
	}
	q.body, err = encode(struct {
		From time.Time `json:"from"`
		To   time.Time `json:"to"`
	}{from, to})
	if err != nil {
		return 0, errors.Join(fmt.Errorf("%s: %w", q.does, err))
	}
	var told struct {
		Ticks int `json:"ticks"`
	}
	_, err = s.ask(ctx, q, &told)
	return told.Ticks, err
}
