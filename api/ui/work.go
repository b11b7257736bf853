package ui

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work/progress"
)

// worksPerPage bounds the works of a page of the list.
const worksPerPage = "20"

func (u *UI) workRoutes() []api.Route {
	show := api.Route{
		Method:  http.MethodGet,
		Pattern: Root + "work/{id}",
		Summary: "Show how far the work of a task has come",
		Role:    token.Viewer,
		Scope:   api.OneTask,
		Query:   []api.Param{{Name: "cursor", Does: "earlier errors"}},
		Serve:   u.showWork,
	}
	steer := func(verb, summary string, body func(form url.Values) any) api.Route {
		r := show
		r.Method, r.Pattern, r.Summary, r.Query = http.MethodPost, show.Pattern+"/"+verb, summary, nil
		r.Role, r.MaxBody = token.Operator, maxSteer
		r.Form = []api.Param{{Name: "what"}, {Name: "version"}, {Name: "next"}}
		if verb == "reset" {
			r.Form = append(r.Form, api.Param{Name: "token"}, api.Param{Name: "reason"})
		}
		r.Serve = func(c *api.Call) error {
			form, err := c.Form()
			if err != nil {
				return err
			}
			l := u.look(c, "Work", string(c.Task()))
			if err := l.seen(form.Get("version")); err != nil {
				return l.refuse(err, form)
			}
			return l.steer(form, api.Question{Path: workOfTask(c.Task()) + "/" + verb, Body: body(form)})
		}
		return r
	}
	return []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: Root + "work",
			Summary: "List tasks that have a work",
			Role:    token.Viewer,
			Scope:   api.ItsTasks,
			Query:   []api.Param{{Name: "find"}, {Name: "behavior"}, {Name: "cursor"}},
			Serve:   u.listWorks,
		},
		show,
		steer(
			"reset",
			"Forget the run of a work, or what its counters counted, or set the token of a stream",
			func(form url.Values) any {
				switch form.Get("what") {
				case "thresholds":
					return map[string]bool{"thresholds": true}
				case "token":
					return map[string]string{"token": form.Get("token"), "reason": strings.TrimSpace(form.Get("reason"))}
				}
				return struct{}{}
			},
		),
		steer("rerun", "Run the buckets again that had failed items", func(url.Values) any {
			return map[string]bool{"failed": true}
		}),
	}
}

// seen returns an error if the task of a work has another event than the last one that a form was made of, as it has
// where the form is late or was sent before. A form that names none is of no page.
func (l *look) seen(version string) error {
	if version == "" {
		return nil
	}
	var is progress.Work
	if err := l.get(workOfTask(l.call.Task()), &is); err != nil {
		return err
	}
	if is.Version.String() != version {
		return problem.New(problem.Changed, "the work has changed since you saw it, so nothing was done")
	}
	return nil
}

// workList holds what the page of works shows.
type workList struct {
	Find, Behavior string
	Works          []progress.Work
	Next           string // address of the next page; "" = there is none
	Wrong          string // what is wrong with the filter
	First          bool
}

func (u *UI) listWorks(c *api.Call) error {
	l := u.look(c, "Work", "Partitioned works")
	query := c.Request().URL.Query()
	body := workList{
		Find:     strings.TrimSpace(query.Get("find")),
		Behavior: strings.TrimSpace(query.Get("behavior")),
		First:    query.Get("cursor") == "",
	}
	id := events.TaskID(body.Find)
	one := body.First && id.Validate() == nil
	whole := strings.Contains(body.Find, "/") // no affinity begins so
	var absent error
	var looked sync.WaitGroup
	if one {
		looked.Go(func() { absent = l.get(workOfTask(id), &progress.Work{}) })
	}
	var page api.TaskPage
	var err error
	if !one || !whole {
		page, err = l.tasksWithWork(query, body.Find, body.Behavior)
	}
	looked.Wait()
	switch {
	case one && absent == nil:
		return c.Redirect(workAt(id))
	case one && whole:
		body.Wrong = problem.Of(absent).Error()
		return l.show("works", body)
	}
	if p, refused := errors.AsType[*problem.Problem](err); refused && p.Status == http.StatusBadRequest {
		body.Wrong, err = p.Error(), nil
	}
	if err := l.miss("tasks", err); err != nil {
		return err
	}
	l.lacks("works", page.Missing)
	body.Works = l.works(page.Tasks)
	if page.Cursor != "" && !page.Through {
		body.Next = withQuery(Root+"work", query, "cursor", page.Cursor)
	}
	return l.show("works", body)
}

// tasksWithWork lists the tasks of a page that have a work.
func (l *look) tasksWithWork(query url.Values, find, behavior string) (page api.TaskPage, err error) {
	ask := url.Values{"limit": {worksPerPage}, "work": {"true"}}
	for name, text := range map[string]string{
		"affinity-prefix": find, "behavior": behavior, "cursor": query.Get("cursor"),
	} {
		if text != "" {
			ask.Set(name, text)
		}
	}
	return page, l.get("/v1/tasks?"+ask.Encode(), &page)
}

// works asks tasks side by side how far their works are. One that does not tell is named as missing.
func (l *look) works(tasks []task.Task) (all []progress.Work) {
	found, errs := make([]progress.Work, len(tasks)), make([]error, len(tasks))
	var wg sync.WaitGroup
	for i := range tasks {
		wg.Go(func() { errs[i] = l.get(workOfTask(tasks[i].ID), &found[i]) })
	}
	wg.Wait()
	for i, err := range errs {
		switch p := problem.Of(err); {
		case err == nil:
			all = append(all, found[i])
		case p.Type != problem.NotFound: // else it was deleted meanwhile
			l.misses("work of "+string(tasks[i].ID), err)
		}
	}
	return all
}

// workOfTask returns the path of the route that tells of the work of a task.
func workOfTask(id events.TaskID) string { return "/v1/tasks/" + pathOf(id) + "/work" }

func workAt(id events.TaskID) string { return Root + "work/" + pathOf(id) }

// WorkAt returns the address of the page of a work.
func (f *frame) WorkAt(id events.TaskID) string { return workAt(id) }

// workPage holds what the page of a work shows.
type workPage struct {
	progress.Work
	Errors progress.FailurePage
	Cursor string // of the errors that are shown; "" = the newest
}

func (u *UI) showWork(c *api.Call) error {
	id := c.Task()
	l := u.look(c, "Work", string(id))
	body := workPage{Cursor: c.Param("cursor")}
	at := workOfTask(id)
	if err := l.get(at, &body.Work); err != nil {
		return err
	}
	l.parts(part{"errors of items", at + "/errors?limit=20" + cursorOf(body.Cursor), &body.Errors})
	return l.show("work", &body)
}

// Stand returns a state, and how far the work or a partition has come where that says more.
func (f *frame) Stand(is progress.State, come string) string {
	if come == strings.ReplaceAll(string(is), "-", " ") {
		return come
	}
	return string(is) + ": " + come
}

// stripWidth is the width of the strip of buckets in its own units.
const stripWidth = 1000

// strip is a part of the strip of buckets of a partition.
type strip struct {
	Class, What string
	Buckets     uint64
	X, Width    float64
}

// Strip cuts the buckets of a partition by what became of them. The order of buckets is not told, only how many they
// are.
func (w *workPage) Strip(p progress.Partition) (parts []strip) {
	b := p.Buckets
	if b.Total == 0 {
		return nil
	}
	x := 0.0
	failed := min(b.Failed, b.Done)
	for _, part := range []strip{
		{Class: "done", What: "done", Buckets: b.Done - failed},
		{Class: "failed", What: "done with failed items", Buckets: failed},
		{Class: "open", What: "open", Buckets: b.Open},
		{Class: "left", What: "left", Buckets: b.Total - min(b.Total, b.Done+b.Open)},
	} {
		if part.Buckets == 0 {
			continue
		}
		part.X, part.Width = x, float64(part.Buckets)/float64(b.Total)*stripWidth
		x += part.Width
		parts = append(parts, part)
	}
	return parts
}

// narrowestMark is the least width of a bucket in the strip: one of very many is seen, too.
const narrowestMark = 2.0

// Place returns where in the strip an open bucket of the partition under way lies, among all that it has.
func (w *workPage) Place(p progress.Partition, bucket uint64) float64 {
	if bucket == 0 || bucket > p.Buckets.Total {
		return 0
	}
	return min(float64(bucket-1)*w.Share(p), stripWidth-w.Mark(p))
}

// Share returns the share of the strip that one bucket of the partition has.
func (w *workPage) Share(p progress.Partition) float64 {
	return stripWidth / float64(max(p.Buckets.Total, 1))
}

// Mark returns the width of an open bucket in the strip.
func (w *workPage) Mark(p progress.Partition) float64 { return max(w.Share(p), narrowestMark) }

// UnderWay reports whether the open buckets of the work are those of a partition.
func (w *workPage) UnderWay(p progress.Partition) bool { return p.Buckets.Open > 0 && len(w.Open) > 0 }

// Length shows milliseconds as a length of time.
func (w *workPage) Length(ms int64) string { return lengthOf(time.Duration(ms) * time.Millisecond) }

// Stops reports whether an operator may reset the work, or run its failed buckets again: nothing of it runs.
func (w *workPage) Stops() bool { return len(w.Open) == 0 && w.Status != task.Running }

// TakesToken reports whether an operator may set the token of a stream: the work is one, and nothing of it runs.
func (w *workPage) TakesToken() bool {
	return w.Stream != nil && len(w.Open) == 0 && (w.Status != task.Running || w.State == progress.Suspended)
}

// HasFailed reports whether buckets had failed items.
func (w *workPage) HasFailed() bool {
	for _, p := range w.Partitions {
		if p.Buckets.Failed > 0 {
			return true
		}
	}
	return false
}

// Counts reports whether a partition has thresholds.
func (w *workPage) Counts() bool {
	for _, p := range w.Partitions {
		if len(p.Thresholds) > 0 {
			return true
		}
	}
	return false
}
