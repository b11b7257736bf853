package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"taskledger/api"
	"taskledger/api/token"
	"taskledger/api/ui/trend"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/task"
)

func (u *UI) behaviorsRoutes() []api.Route {
	pause := api.Route{
		Method:  http.MethodPost,
		Pattern: Root + "behaviors/{behavior}/pause",
		Summary: "Pause a behavior",
		Role:    token.Operator,
		Scope:   api.Everything,
		MaxBody: maxSteer,
		Form:    []api.Param{{Name: "reason"}, {Name: "force"}, {Name: "next"}},
		Serve:   u.pauseBehavior,
	}
	unpause := pause
	unpause.Pattern, unpause.Summary, unpause.Serve = Root+"behaviors/{behavior}/unpause", "Let a behavior go on", u.unpauseBehavior
	return []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: Root + "behaviors",
			Summary: "Show the behaviors, what was done of each, and what is paused",
			Role:    token.Viewer,
			Scope:   api.ItsTasks,
			Serve:   u.showBehaviors,
		},
		pause,
		unpause,
	}
}

// behaviorsPage holds what the page of behaviors shows.
type behaviorsPage struct {
	Rows    []behaviorRow
	Partial bool // it counts the newest tasks alone
	Steers  bool // the viewer of the page may pause behaviors
	// Lately has the figures of the last quarter of an hour, as far as this node has asked; nil = it has not.
	Lately *figures
	Began  *figures // since the owners took their shards over; nil = they are not shown
}

// behaviorRow tells of one behavior.
type behaviorRow struct {
	behaviorCount
	Nodes  int // so many run it
	Paused *task.Pause
}

// figures tells what was done of each behavior in some time.
type figures struct {
	For     time.Duration // 0 = not the same for all
	Rows    []figureRow
	LeftOut string // numbers of shards that are not counted
}

// figureRow tells what was done of one behavior.
type figureRow struct {
	meter.Figures
	over time.Duration
}

func (u *UI) showBehaviors(c *api.Call) error {
	l := u.look(c, "Behaviors", "Behaviors")
	var counted api.Behaviors
	var members nodes
	var shards api.Shards
	l.parts(
		part{"counts", "/v1/behaviors", &counted},
		part{"nodes", "/v1/nodes", &members},
		part{"figures", "/v1/shards?figures=true", &shards},
	)
	l.lacks("counts", counted.Missing)
	body := behaviorsPage{
		Rows:    behaviorRows(&counted, members.Nodes, l.By),
		Partial: counted.Partial,
		Steers:  l.May("operator") && !l.By.Limited(),
		Began:   l.began(&shards),
	}
	if !l.By.Limited() {
		body.Lately = lately(u.cfg.Trend.Points())
	}
	return l.show("behaviors", body)
}

// behaviorRows lists the behaviors that a node runs, that have tasks, or that are paused, by name.
func behaviorRows(counted *api.Behaviors, members []node, by *token.Token) (rows []behaviorRow) {
	of := func(name string) *behaviorRow {
		at := slices.IndexFunc(rows, func(r behaviorRow) bool { return r.Behavior == name })
		if at < 0 {
			at, rows = len(rows), append(rows, behaviorRow{behaviorCount: behaviorCount{Behavior: name}})
		}
		return &rows[at]
	}
	_, counts := sums(counted.Counts)
	for _, b := range counts {
		of(b.Behavior).behaviorCount = b
	}
	for _, n := range members {
		for _, name := range n.Behaviors {
			of(name).Nodes++
		}
	}
	for i := range counted.Paused {
		of(counted.Paused[i].Behavior).Paused = &counted.Paused[i]
	}
	rows = slices.DeleteFunc(rows, func(r behaviorRow) bool { return !by.MayBehavior(r.Behavior) })
	slices.SortFunc(rows, func(x, y behaviorRow) int { return cmp.Compare(x.Behavior, y.Behavior) })
	return rows
}

// At returns the address of the tasks of the behavior.
func (r behaviorRow) At() string {
	return Root + "tasks?" + url.Values{"behavior": {r.Behavior}}.Encode()
}

// Verb returns the address of a form that steers the behavior.
func (r behaviorRow) Verb(verb string) string {
	return Root + "behaviors/" + url.PathEscape(r.Behavior) + "/" + verb
}

// began returns what owners have counted since they took their shards over.
func (l *look) began(shards *api.Shards) *figures {
	if len(shards.Figures) == 0 {
		return nil
	}
	var all [][]meter.Figures
	var silent []int
	for i, f := range shards.Figures {
		some, err := meter.Unpack(f.Behaviors, f.Numbers)
		switch {
		case err != nil:
			l.Missing = append(l.Missing, fmt.Sprintf("figures of shard %d: %s", i, err))
		case i < len(shards.Shards) && shards.Shards[i].Problem != "":
			silent = append(silent, shards.Shards[i].Shard)
		default:
			all = append(all, some)
		}
	}
	return &figures{Rows: rowsOf(meter.Sum(all...), 0), LeftOut: numbersOf(silent)}
}

// lately sums up points; nil = there are none yet.
func lately(points []trend.Point) *figures {
	if len(points) == 0 {
		return nil
	}
	all, over := trend.Sum(points)
	return &figures{
		For:     over,
		Rows:    rowsOf(all, over),
		LeftOut: numbersOf(trend.LeftOut(points)),
	}
}

func rowsOf(all []meter.Figures, over time.Duration) (rows []figureRow) {
	for i := range all {
		rows = append(rows, figureRow{all[i], over})
	}
	return rows
}

// numbersOf lists the first of some numbers.
func numbersOf(all []int) (text string) {
	const most = 20
	for i, n := range all {
		if i == most {
			return text + fmt.Sprintf(" and %d more", len(all)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += strconv.Itoa(n)
	}
	return text
}

// Length shows the time of the figures.
func (f *figures) Length() string { return lengthOf(f.For.Round(time.Second)) }

// Count returns a counter by its name in the template.
func (r figureRow) Count(name string) int64 {
	return r.Counts[map[string]meter.Counter{
		"created":   meter.TasksCreated,
		"started":   meter.AttemptsStarted,
		"succeeded": meter.AttemptsSucceeded,
		"failed":    meter.Failures,
		"final":     meter.FinalFailures,
		"lost":      meter.AttemptsLost,
		"snoozed":   meter.AttemptsSnoozed,
		"refused":   meter.SubmitsRefused,
	}[name]]
}

// Rate shows how many attempts have ended in a second, on average.
func (r figureRow) Rate() string {
	if r.over <= 0 {
		return "–"
	}
	return rateOf(float64(r.ended()) / r.over.Seconds())
}

func (r figureRow) ended() int64 { return r.Counts[meter.AttemptsSucceeded] + r.Counts[meter.Failures] }

// Share shows which part of the attempts that ended has failed.
func (r figureRow) Share() string {
	if r.ended() == 0 {
		return "–"
	}
	return shareOf(r.Counts[meter.Failures], r.ended())
}

// Quantiles shows the median and the 99th percentile of a time.
func (r figureRow) Quantiles(name string) string {
	d := r.Times[map[string]meter.Histogram{
		"late": meter.Lateness,
		"wait": meter.Wait,
		"took": meter.Duration,
	}[name]]
	if d.N() == 0 {
		return "–"
	}
	return lengthOf(d.Quantile(0.5)) + " · " + lengthOf(d.Quantile(0.99))
}

// rateOf shows a number of a second with two digits that mean something.
func rateOf(n float64) string {
	switch {
	case n == 0:
		return "0 /s"
	case n >= 10:
		return strconv.FormatFloat(n, 'f', 0, 64) + " /s"
	case n >= 0.01:
		return strconv.FormatFloat(n, 'f', 2, 64) + " /s"
	}
	return "below 0.01 /s"
}

// shareOf shows a part of a whole in percent, never none or all where it is not.
func shareOf(part, whole int64) string {
	percent := 100 * float64(part) / float64(whole)
	switch text := strconv.FormatFloat(percent, 'f', 1, 64) + " %"; {
	case part > 0 && percent < 0.1:
		return "below 0.1 %"
	case part < whole && percent > 99.9:
		return "above 99.9 %"
	default:
		return text
	}
}

// Moment returns a time of day as pages show it.
func (f *frame) Moment(at time.Time) events.Millis { return events.MillisOf(at) }

func (u *UI) pauseBehavior(c *api.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	return u.look(c, "Behaviors", "Behaviors").steer(form, api.Question{
		Path: "/v1/behaviors/" + url.PathEscape(c.Path("behavior")) + "/pause",
		Body: api.PauseRequest{
			Reason: api.Reason{Reason: form.Get("reason")},
			Force:  form.Get("force") == "true",
		},
	})
}

func (u *UI) unpauseBehavior(c *api.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	return u.look(c, "Behaviors", "Behaviors").steer(form, api.Question{
		Path: "/v1/behaviors/" + url.PathEscape(c.Path("behavior")) + "/unpause",
	})
}
