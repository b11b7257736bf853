package sync_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/sync"
	"taskledger/api/token"
	"taskledger/collections"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
	"taskledger/tasklog"
)

var everybody = apitest.Everybody(apitest.Secrets{
	"tenant": {Name: "tina", Role: token.Operator, Prefix: "shop_orders/"},
})

// The first run of every world was created at noon.
var noon = events.MillisOf(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC))

// world has collections and their runs. It is for one request at a time.
type world struct {
	schedules map[string]schedule.Schedule
	tasks     []task.Task // in the order of their creation
	params    map[events.TaskID]json.RawMessage
	lines     []tasklog.TaskLine
	forgotten []events.TaskID // of runs that retention has removed, with their logs
	orders    []order
	perPage   int   // most tasks of a page of the engine
	missing   bool  // a shard does not answer
	fails     error // every question about logs
	refuses   error // every order
	selected  tasklog.Selection
	changes   int           // so many orders meet another definition
	sharing   events.TaskID // the run that orders share; "" = they make one
}

func newWorld() *world {
	w := &world{
		schedules: map[string]schedule.Schedule{},
		params:    map[events.TaskID]json.RawMessage{},
		perPage:   3,
	}
	w.define("shop", "orders", "0 0 * ? * *")
	w.define("shop", "prices", "0 0 * ? * *")
	w.define("shop_old", "orders", "")
	w.schedules["shop_nightly"] = schedule.Schedule{
		Name:       "shop_nightly",
		Definition: schedule.Definition{Cron: "0 0 * ? * *", Behavior: "sleep"},
	}
	return w
}

func (w *world) define(source, name, cron string) {
	c := collections.Collection{
		Source: source,
		Name:   name,
		Driver: collections.Driver{Driver: "noop"},
		Runs:   schedule.Definition{Cron: cron, Timezone: "UTC", Behavior: collections.Behavior},
	}
	w.schedules[c.ID()] = schedule.Schedule{Name: c.ID(), Definition: c.Definition(), Version: 7}
}

// uuidOf returns a UUID for each number.
func uuidOf(n int) string { return fmt.Sprintf("7a5f6f5c-2f27-5d3e-9d55-%012x", n) }

// run adds a run that was created some seconds after noon, and returns its id as callers see it.
func (w *world) run(source, name string, after int, s task.Status, sub task.Substatus) string {
	n := len(w.tasks)
	id := events.TaskID(fmt.Sprintf("%s_%s/%s", source, name, uuidOf(n)))
	t := task.Task{
		ID:        id,
		Behavior:  collections.Behavior,
		Status:    s,
		Substatus: sub,
		Priority:  200,
		Times:     task.Times{CreatedAt: noon + events.Millis(after)*1000},
	}
	w.params[id], _ = json.Marshal(collections.Params{Source: source, Collection: name})
	if sub == task.SubFinal || sub == task.SubCancelled {
		t.StartedAt, t.EndedAt = t.CreatedAt+500, t.CreatedAt+900
		t.Details.ParamsElided = true
	} else {
		t.Params = w.params[id]
	}
	w.tasks = append(w.tasks, t)
	return strings.Replace(string(id), "/", "_", 1)
}

// Get implements sync.Runs.
func (w *world) Get(_ context.Context, id events.TaskID) (task.Task, error) {
	for _, t := range w.tasks {
		if t.ID == id {
			t.Params, t.Details.ParamsElided = w.params[id], false
			return t, nil
		}
	}
	return task.Task{}, fmt.Errorf("task %s: %w", id, task.ErrNotFound)
}

// ListPage implements sync.Runs. The cursor counts the tasks that were looked at.
func (w *world) ListPage(_ context.Context, f task.Filter, cursor string) (page task.Page, err error) {
	from, _ := strconv.Atoi(cursor)
	all := slices.Clone(w.tasks)
	slices.Reverse(all)
	slices.SortStableFunc(all, func(x, y task.Task) int { return cmp.Compare(y.CreatedAt, x.CreatedAt) })
	if w.missing {
		page.Missing = []task.Missing{{Shard: 3, Err: context.DeadlineExceeded}}
	}
	at := from
	for ; at < len(all) && at < from+w.perPage && len(page.Tasks) < cmp.Or(f.Limit, 100); at++ {
		t := all[at]
		created := t.CreatedAt.Time()
		if t.Behavior == f.Behavior && (f.Affinity == "" || t.ID.Affinity() == f.Affinity) &&
			strings.HasPrefix(t.ID.Affinity(), f.AffinityPrefix) &&
			(f.Substatus == 0 || t.Substatus == f.Substatus) &&
			!created.Before(f.CreatedFrom) && (f.CreatedTo.IsZero() || created.Before(f.CreatedTo)) {
			page.Tasks = append(page.Tasks, t)
		}
	}
	page.Through = at == len(all)
	if !page.Through {
		page.Cursor = strconv.Itoa(at)
	}
	return page, nil
}

// Log implements sync.Runs. The cursor counts the lines that were told.
func (w *world) Log(_ context.Context, id events.TaskID, s tasklog.Selection) (told tasklog.Told, err error) {
	w.selected = s
	if w.fails != nil {
		return told, w.fails
	}
	if slices.Contains(w.forgotten, id) {
		told.Behavior = collections.Behavior
		return told, tasklog.ErrGone
	}
	at := slices.IndexFunc(w.tasks, func(t task.Task) bool { return t.ID == id })
	if at < 0 {
		return told, fmt.Errorf("task %s: %w", id, task.ErrNotFound)
	}
	from, _ := strconv.Atoi(s.Cursor)
	var all []tasklog.TaskLine
	for _, l := range w.lines {
		if l.At >= s.Since && (s.Until == 0 || l.At <= s.Until) {
			all = append(all, l)
		}
	}
	to := min(len(all), from+min(w.perPage, cmp.Or(s.Limit, tasklog.MaxPageLines)))
	return tasklog.Told{
		Lines:    all[from:to],
		Cursor:   strconv.Itoa(to),
		More:     to < len(all),
		Behavior: w.tasks[at].Behavior,
	}, nil
}

// Operate implements sync.Runs.
func (w *world) Operate(_ context.Context, verb operations.Verb, on, _ string) (bool, error) {
	for i := range w.tasks {
		if string(w.tasks[i].ID) == on && verb == operations.Cancel {
			w.tasks[i].Status, w.tasks[i].Substatus = task.Failure, task.SubCancelled
		}
	}
	return false, nil
}

// directory implements sync.Schedules.
type directory struct{ *world }

func (d directory) Get(_ context.Context, name string) (schedule.Schedule, error) {
	s, is := d.schedules[name]
	if !is {
		return s, fmt.Errorf("schedule %s: %w", name, schedule.ErrNotFound)
	}
	return s, nil
}

func (d directory) List(
	_ context.Context, f schedule.Filter, after string, limit int,
) (all []schedule.Schedule, more bool, err error) {
	for _, s := range d.schedules {
		if s.Name > after && strings.HasPrefix(s.Name, f.Prefix) && s.Definition.Behavior == f.Behavior {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y schedule.Schedule) int { return cmp.Compare(x.Name, y.Name) })
	n := min(len(all), limit, d.perPage)
	return all[:n], n < len(all), nil
}

func (d directory) Steer(
	ctx context.Context, verb operations.ScheduleVerb, name, _ string, seen schedule.Version,
) error {
	s, err := d.Get(ctx, name)
	if err != nil || s.Version != seen {
		return cmp.Or(err, schedule.ErrChanged)
	}
	s.Paused = nil
	if verb == operations.PauseSchedule {
		s.Paused = &schedule.Pause{Since: noon}
	}
	d.schedules[name] = s
	return nil
}

// order asks for a run of a collection.
type order struct {
	collection string
	schedule.ByHand
	seen schedule.Version
}

// ordered is a run that was asked for.
type ordered struct {
	operations.Handle
	id     events.TaskID
	joined bool
}

func (o ordered) ID() events.TaskID { return o.id }

func (o ordered) Joined() bool { return o.joined }

func (o ordered) Repeated() bool { return false }

func (d directory) RunWith(
	_ context.Context, name string, is schedule.ByHand, seen schedule.Version,
) (operations.Handle, error) {
	if d.changes > 0 {
		d.changes--
		return nil, fmt.Errorf("schedule %s: %w", name, schedule.ErrChanged)
	}
	if d.refuses != nil {
		return nil, d.refuses
	}
	d.orders = append(d.orders, order{name, is, seen})
	if d.sharing != "" {
		return ordered{id: d.sharing, joined: true}, nil
	}
	return ordered{id: events.TaskID(name + "/" + uuidOf(len(d.orders)))}, nil
}

// server is an API with collections.
type server struct {
	t   *testing.T
	api *api.API
	log *bytes.Buffer
}

func serve(t *testing.T, w *world) *server { return serveWithin(t, w, api.Limits{}) }

func serveWithin(t *testing.T, w *world, limits api.Limits) *server {
	t.Helper()
	s := &server{t: t, log: &bytes.Buffer{}}
	var err error
	s.api, err = api.New(api.Config{
		Limits:       limits,
		Client:       operations.Direct{},
		Tokens:       everybody,
		Version:      "test",
		Routes:       sync.Routes(w, directory{w}),
		ErrorFormats: []api.ErrorFormat{sync.ErrorFormat()},
		Log:          slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask asks with a token for what lies below the root; header is name and value by turns.
func (s *server) ask(secret, method, path string, header ...string) *httptest.ResponseRecorder {
	return apitest.Ask(s.api, secret, method, sync.Root+path, "", header...)
}

// want fails unless an answer has a status and a part.
func (s *server) want(a *httptest.ResponseRecorder, status int, part string) *httptest.ResponseRecorder {
	s.t.Helper()
	return apitest.Want(s.t, a, status, part)
}

// read reads an answer of status 200.
func (s *server) read(path string, into any) {
	s.t.Helper()
	a := s.want(s.ask("viewer", "GET", path), 200, "")
	if err := json.Unmarshal(a.Body.Bytes(), into); err != nil {
		s.t.Fatalf("%s: %v", a.Body, err)
	}
}
