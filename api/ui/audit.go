package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/events"
)

func (u *UI) auditRoutes() []api.Route {
	return []api.Route{{
		Method:  http.MethodGet,
		Pattern: Root + "audit",
		Summary: "Show what operators have done lately",
		Role:    token.Viewer,
		Scope:   api.Everything,
		Query: []api.Param{
			{Name: "by", Does: "of this principal alone"},
			{Name: "before", Does: "before this time"},
			{Name: "last", Does: "position of the last event of the page before, of the millisecond before that time"},
		},
		Large: true,
		Serve: u.showAudit,
	}}
}

// operated lists the kinds of events by which people change what is there. Submits are not among them.
var operated = []events.Kind{
	events.KindRescheduled,
	events.KindSuspended,
	events.KindResumed,
	events.KindCancelRequested,
	events.KindDeleted,
	events.KindAcceptedLoss,
	events.KindRecovered,
	events.KindPaused,
	events.KindUnpaused,
	events.KindStoreForgotten,
	events.KindScheduleSet,
	events.KindScheduleDefined,
	events.KindSchedulePaused,
	events.KindScheduleResumed,
	events.KindScheduleEnded,
	events.KindBackfillSet,
	events.KindBackfillEnded,
	events.KindWorkReset,
}

// deed is an event that the request of a principal has caused.
type deed struct {
	event
	Task     events.TaskID `json:"task"`
	Record   string        `json:"record"`
	Behavior string        `json:"behavior"`
}

// deeds holds what a look back into the journal has found.
type deeds struct {
	All   []deed    // the newest first
	Since time.Time // not all before it was read; zero = all was
	Full  bool      // there may be older ones before the last of All
	Why   string    // why not all older ones were read; "" = all was, or there are enough
}

// How far a look back goes: it reads stretches of time, each longer than the one before, until it has enough or its
// time is over.
const (
	deedsShown = 200
	readWithin = 3 * time.Second
)

// stretches are the beginnings of the stretches before a time; after the last one comes all that there is. The first
// ones are short: of a busy cluster a minute takes longer than a page waits.
var stretches = []time.Duration{
	10 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute,
	time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 31 * 24 * time.Hour,
}

// lookBack reads the newest events of some kinds before a time, those that are wanted; the zero time is now.
func (l *look) lookBack(before time.Time, kinds []events.Kind, wanted func(*deed) bool) (found deeds) {
	to := before
	if latest := l.Now.Add(time.Minute); before.IsZero() || before.After(latest) { // the clocks of owners may be ahead
		before, to = l.Now, latest
	}
	page, stop := l.bounded()
	defer stop()
	ctx, cancel := context.WithTimeout(page, readWithin)
	defer cancel()
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	for i := 0; i <= len(stretches); i++ {
		query := url.Values{"kind": {strings.Join(names, ",")}, "to": {to.UTC().Format(time.RFC3339Nano)}}
		var from time.Time
		if i < len(stretches) {
			from = before.Add(-stretches[i])
			query.Set("from", from.UTC().Format(time.RFC3339Nano))
		}
		some, err := l.stretch(ctx, query, wanted)
		found.All = append(found.All, some...)
		if err != nil {
			found.All = found.All[:min(len(found.All), deedsShown)]
			found.Why = problem.Of(err).Error()
			if ctx.Err() != nil {
				found.Why = "reading further back takes too long for a page"
			}
			found.Since = to
			return found
		}
		if to = from; len(found.All) >= deedsShown {
			found.All, found.Full = found.All[:deedsShown], true
			return found
		}
	}
	return found
}

// stretch reads the newest events of a stretch of time, newest first. Their times count, though clocks differ, since
// pages go on before a time; of events of one millisecond the one is newer that was committed later.
func (l *look) stretch(ctx context.Context, query url.Values, wanted func(*deed) bool) (newest []deed, err error) {
	err = l.api.Lines(ctx, api.Question{Path: "/v1/replay", Query: query}, func(line []byte) error {
		var d deed
		if err := json.Unmarshal(line, &d); err != nil {
			return err
		}
		if !wanted(&d) {
			return nil
		}
		d.Data = slices.Clone(d.Data)
		if newest = append(newest, d); len(newest) >= 2*deedsShown {
			slices.SortStableFunc(newest, byTime)
			newest = append(newest[:0], newest[len(newest)-deedsShown:]...)
		}
		return nil
	})
	slices.SortStableFunc(newest, byTime)
	slices.Reverse(newest)
	return newest, err
}

func byTime(a, b deed) int { return cmp.Compare(a.At, b.At) }

// audit holds what the page of deeds shows.
type audit struct {
	deeds
	By     string
	Before string
	Next   string // address of older ones; "" = there are none
}

func (u *UI) showAudit(c *api.Call) error {
	l := u.look(c, "Audit", "Audit")
	body := audit{By: strings.TrimSpace(c.Param("by")), Before: c.Param("before")}
	before, err := c.Time("before")
	last := c.Param("last")
	if _, wrong := events.ParsePosition(last); wrong != nil && last != "" && err == nil {
		err = fieldProblem("last", wrong.Error())
	}
	if err != nil { // the form keeps what was typed
		why := problem.Of(err)
		l.Missing = append(l.Missing, why.Error())
		return l.showAs(why.Status, "audit", body)
	}
	// An entry has many events of one millisecond: the last page had the later ones of its last millisecond.
	var shown events.Millis
	body.deeds = l.lookBack(before, operated, func(d *deed) bool {
		if d.Position == last {
			shown = d.At
		}
		return d.At != shown && (d.Principal != "" || d.Record == "journal") && (body.By == "" || d.Principal == body.By)
	})
	if body.Full {
		end := body.All[len(body.All)-1]
		query := c.Request().URL.Query()
		query.Set("last", end.Position)
		body.Next = withQuery(Root+"audit", query, "before", (end.At + 1).Time().UTC().Format(time.RFC3339Nano))
	}
	return l.show("audit", body)
}

// About says what the event is about where that is no task.
func (d deed) About() string {
	name, _ := events.ScheduleOf(d.Task)
	var data struct {
		Behavior string `json:"behavior"`
		Store    string `json:"store"`
	}
	_ = json.Unmarshal(d.Data, &data) // an event without these is told without them
	switch {
	case d.Record == "schedule":
		return "schedule " + name
	case data.Behavior != "":
		return "behavior " + data.Behavior
	case data.Store != "":
		return "store " + data.Store
	case d.Record == "journal":
		shard, _, _ := strings.Cut(d.Position, ".")
		return "journal of shard " + shard
	}
	return ""
}

// Reason returns the reason that the principal gave; "" = none.
func (d deed) Reason() string {
	var data struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(d.Data, &data) // an event without one is told without it
	return data.Reason
}

// Schedule returns the address of the schedule that the event is about; "" = it is about none.
func (d deed) Schedule() string {
	if name, err := events.ScheduleOf(d.Task); err == nil && d.Record == "schedule" {
		return Root + "schedules/" + url.PathEscape(name)
	}
	return ""
}
