package ui

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/ui/sessions"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
)

// schedulesPerPage bounds the schedules of a page, and those that are steered at once.
const schedulesPerPage = 50

func (u *UI) schedulesRoutes() []api.Route {
	return []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: Root + "schedules",
			Summary: "List schedules",
			Role:    token.Viewer,
			Scope:   api.ItsTasks,
			Query:   []api.Param{{Name: "prefix"}, {Name: "behavior"}, {Name: "paused"}, {Name: "after"}},
			Serve:   u.listSchedules,
		},
		{
			Method:  http.MethodGet,
			Pattern: Root + "schedules/{name}",
			Summary: "Show a schedule, its next ticks and its last runs",
			Role:    token.Viewer,
			Scope:   api.OneSchedule,
			Query:   []api.Param{{Name: "cursor", Does: "older events"}},
			Large:   true,
			Serve:   u.showSchedule,
		},
		{
			Method:  http.MethodPost,
			Pattern: Root + "schedules",
			Summary: "Run, pause or resume schedules",
			Role:    token.Submitter,
			Scope:   api.ItsTasks,
			MaxBody: maxSteer,
			Form: []api.Param{
				{Name: "name"},
				{Name: "verb"},
				{Name: "reason"},
				{Name: "version"},
				{Name: "key"},
				{Name: "once"},
				{Name: "priority"},
				{Name: "next"},
			},
			Many:  []string{"name"},
			Serve: u.steerSchedules,
		},
	}
}

// schedules is the answer of the API that lists them.
type schedules struct {
	Schedules []scheduleRow `json:"schedules"`
	Next      string        `json:"next"`
}

// scheduleRow is a schedule as pages show it.
type scheduleRow struct{ schedule.Schedule }

// scheduleList holds what the page of schedules shows.
type scheduleList struct {
	Schedules []scheduleRow
	Filters   int // fields that are set
	Query     url.Values
	Wrong     *problem.Problem // what is wrong with a field
	Next      string           // address of the next page; "" = there is none
}

func (u *UI) listSchedules(c *api.Call) error {
	l := u.look(c, "Schedules", "Schedules")
	query := c.Request().URL.Query()
	body := scheduleList{Query: query}
	ask := url.Values{"limit": {strconv.Itoa(schedulesPerPage)}}
	for _, name := range []string{"prefix", "behavior", "paused", "after"} {
		if text := query.Get(name); text != "" {
			ask.Set(name, text)
			if name != "after" {
				body.Filters++
			}
		}
	}
	var page schedules
	var err error
	if behavior := query.Get("behavior"); behavior != "" && events.ValidateBehavior(behavior) != nil {
		err = fieldProblem("behavior", "want 1 to 48 bytes of a-z, 0-9 and -")
	} else {
		err = l.get("/v1/schedules?"+ask.Encode(), &page)
	}
	if p, refused := errors.AsType[*problem.Problem](err); refused && p.Status == http.StatusBadRequest {
		body.Wrong, err = p, nil
		l.Missing = append(l.Missing, p.Error())
	}
	if err := l.miss("schedules", err); err != nil {
		return err
	}
	body.Schedules = page.Schedules
	if page.Next != "" {
		body.Next = withQuery(Root+"schedules", query, "after", page.Next)
	}
	return l.show("schedules", body)
}

// withQuery returns an address with a query in which one value is another, and none is empty.
func withQuery(path string, query url.Values, name, value string) string {
	set := url.Values{}
	for key, values := range query {
		if len(values) > 0 && values[0] != "" {
			set[key] = values
		}
	}
	set.Del(name)
	if value != "" {
		set.Set(name, value)
	}
	if len(set) == 0 {
		return path
	}
	return path + "?" + set.Encode()
}

// FieldWrong says what is wrong with a field of the filter.
func (b scheduleList) FieldWrong(name string) string {
	if b.Wrong == nil || b.Wrong.Field != name {
		return ""
	}
	return b.Wrong.Error()
}

// At returns the address of the page of the schedule.
func (s scheduleRow) At() string { return Root + "schedules/" + url.PathEscape(s.Name) }

// State says in the words of the command line what becomes of ticks.
func (s scheduleRow) State() string {
	switch {
	case s.Paused != nil && s.Paused.Failed != "":
		return "failed"
	case s.Paused != nil:
		return "paused"
	case s.Definition.Cron == "":
		return "by hand"
	case s.Why != "":
		return "held up"
	case s.Next == 0:
		return "ended"
	}
	return "on"
}

// Zone returns the name of the time zone.
func (s scheduleRow) Zone() string { return cmp.Or(s.Definition.Timezone, "UTC") }

// InZone shows a moment in the time zone of the schedule.
func (s scheduleRow) InZone(at events.Millis) string {
	zone, err := time.LoadLocation(s.Zone())
	switch {
	case at == 0:
		return "–"
	case err != nil:
		return "this node does not know the zone"
	}
	return at.Time().In(zone).Format("Mon " + shownTime)
}

// oneSchedule holds what the page of a schedule shows.
type oneSchedule struct {
	scheduleRow
	Ticks  []events.Millis
	Runs   []task.Task
	Events []tick // what became of ticks without runs, pauses and changes, the newest first
	Whole  bool   // Runs are all that the page asked for
	Cursor string // of the events that are shown; "" = the newest
	Older  string // address of older events; "" = there are none
}

// tick is an event of a schedule in words.
type tick struct {
	event
	From, To  events.Millis // the ticks that it is about
	Text, Why string
}

// How much of its past the page of a schedule shows.
const (
	ticksShown        = "10"
	runsShown         = "20"
	scheduleEventsMax = "200"
)

func (u *UI) showSchedule(c *api.Call) error {
	name := c.Path("name")
	l := u.look(c, "Schedules", name)
	at := "/v1/schedules/" + url.PathEscape(name)
	body := oneSchedule{Cursor: c.Param("cursor")}
	if err := l.get(at, &body.scheduleRow); err != nil {
		return err
	}
	var ticks struct {
		Next []events.Millis `json:"next"`
	}
	var runs api.TaskPage
	var past history
	told := "/v1/tasks/" + pathOf(events.ScheduleRecord(name)) + "/history?order=newest&limit=" + scheduleEventsMax
	asks := []part{
		{"runs", "/v1/tasks?" + url.Values{"affinity": {name}, "limit": {runsShown}}.Encode(), &runs},
		{"history", told + cursorOf(body.Cursor), &past},
	}
	if body.Definition.Cron != "" {
		asks = append(asks, part{"next ticks", at + "/next?n=" + ticksShown, &ticks})
	}
	l.parts(asks...)
	l.lacks("runs", runs.Missing)
	body.Ticks, body.Runs = ticks.Next, runs.Tasks
	body.Whole = runs.Tasks != nil && len(runs.Missing) == 0 // an answer has a list, also of no tasks
	if past.Cursor != "" {
		body.Older = body.At() + "?cursor=" + url.QueryEscape(past.Cursor)
	}
	for _, e := range past.Events {
		if t := tickOf(e); t.Text != "" {
			body.Events = append(body.Events, t)
		}
	}
	return l.show("schedule", body)
}

// tickOf tells an event of a schedule in words; without a text it is one that the list of runs tells.
func tickOf(e event) tick {
	var data struct {
		Decision string        `json:"decision"`
		Cause    string        `json:"cause"`
		From     events.Millis `json:"from"`
		To       events.Millis `json:"to"`
		Reason   string        `json:"reason"`
		Failed   string        `json:"failed"`
		Ticks    int           `json:"ticks"`
	}
	_ = json.Unmarshal(e.Data, &data) // an event without these is told without them
	t := tick{event: e, From: data.From, To: data.To, Why: cmp.Or(data.Cause, data.Reason)}
	switch e.Kind {
	case "Ticked":
		if data.Decision != "created" && data.Decision != "filled" {
			t.Text = data.Decision
		}
	case "SchedulePaused":
		t.Text = "paused"
		if data.Failed != "" {
			t.Why = cmp.Or(t.Why, "the run "+data.Failed+" has failed")
		}
	case "ScheduleResumed":
		t.Text = "resumed"
	case "ScheduleSet", "ScheduleDefined":
		t.Text = "set"
	case "ScheduleEnded":
		t.Text = "ended"
	case "BackfillSet":
		t.Text = fmt.Sprintf("backfill of %d ticks", data.Ticks)
	case "BackfillEnded":
		t.Text = "backfill ended"
	}
	return t
}

// Key returns a key for a run by hand: a form that is sent twice makes one run, and after that run, and after each
// event of it, the page has another. Where the latest run is not known there is none.
func (s oneSchedule) Key() string {
	switch {
	case !s.Whole:
		return ""
	case len(s.Runs) == 0:
		return fmt.Sprintf("ui:%d", s.Version)
	}
	latest := &s.Runs[0]
	return fmt.Sprintf("ui:%d:%s:%s", s.Version, latest.ID, latest.Version)
}

// JSON shows the definition as JSON.
func (s oneSchedule) JSON() (template.HTML, error) {
	text, err := json.Marshal(s.Definition)
	return marked(indented(text), markRoom), err
}

// became tells what a form did to one of many.
type became struct{ Name, At, Error string }

// steered holds what a page shows of a form that has not done all that it asked for.
type steered struct {
	Verb string
	All  []became
	Done int
	Back string
}

func (u *UI) steerSchedules(c *api.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	names, verb := form["name"], form.Get("verb")
	l := u.look(c, "Schedules", "Schedules")
	switch {
	case len(names) == 0:
		return l.refuse(fieldProblem("name", "choose at least one"), form)
	case len(names) > schedulesPerPage:
		return l.refuse(
			fieldProblem("name", fmt.Sprintf("%d are too many at once: %d may be chosen", len(names), schedulesPerPage)),
			form,
		)
	case !slices.Contains([]string{"run", "pause", "resume"}, verb):
		return l.refuse(fieldProblem("verb", "want run, pause or resume"), form)
	}
	form.Set("key", cmp.Or(form.Get("key"), l.keyOf(form.Get("once"))))
	report := steered{Verb: verb, Back: within(form.Get("next"))}
	for _, name := range names {
		of := became{Name: name, At: Root + "schedules/" + url.PathEscape(name)}
		if l.late() && len(names) > 1 {
			of.Error = "not done: it was not asked for, as those before it took too long"
			report.All = append(report.All, of)
			continue
		}
		var told api.Submitted // a run answers with it, and the other verbs without a body
		err := l.ask(steering(name, verb, form), &told)
		switch {
		case err != nil && len(names) == 1:
			return l.refuse(err, form)
		case err != nil && unknown(problem.Of(err)):
			of.Error = "it is not known whether this was done: " + problem.Of(err).Error()
		case err != nil:
			of.Error = "not done: " + problem.Of(err).Error()
		case told.Joined:
			of.Error = fmt.Sprintf("no new run: %s is shared", told.ID)
		default:
			report.Done++
		}
		report.All = append(report.All, of)
	}
	if verb == "run" && form.Get("once") == *u.orders.Load() {
		u.ordered()
	}
	if report.Done == len(names) {
		return c.Redirect(report.Back)
	}
	l.Title = "Not all was done"
	return l.showAs(http.StatusConflict, "steered", report)
}

// keyOf returns the key of the runs that the caller orders by a form; "" = the form has none.
func (l *look) keyOf(once string) string {
	if once == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(sessions.Principal(l.By) + once))
	return "ui:" + hex.EncodeToString(sum[:16])
}

// steering returns the question by which the API steers a schedule.
func steering(name, verb string, form url.Values) api.Question {
	q := api.Question{
		Path:   "/v1/schedules/" + url.PathEscape(name) + "/" + verb,
		Query:  url.Values{},
		Header: http.Header{},
	}
	if version := form.Get("version"); version != "" {
		q.Header.Set("If-Match", strconv.Quote(version))
	}
	switch verb {
	case "pause":
		q.Body = api.Reason{Reason: form.Get("reason")}
	case "run":
		if key := form.Get("key"); key != "" {
			q.Header.Set("Idempotency-Key", key)
		}
		if priority := form.Get("priority"); priority != "" {
			q.Query.Set("priority", priority)
		}
	}
	return q
}

// fieldProblem returns the problem of a field of a form.
func fieldProblem(field, text string) *problem.Problem {
	p := problem.New(problem.Invalid, "%s: %s", field, text)
	p.Field = field
	return p
}

// VersionText returns the version as the header If-Match has it.
func (s scheduleRow) VersionText() string { return strconv.FormatUint(uint64(s.Version), 10) }
