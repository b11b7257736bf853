package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/task"
)

// tasksPerPage bounds the tasks of a page.
const tasksPerPage = "50"

func (u *UI) tasksRoutes() []api.Route {
	list := api.Route{
		Method:  http.MethodGet,
		Pattern: Root + "tasks",
		Summary: "List tasks",
		Role:    token.Viewer,
		Scope:   api.ItsTasks,
		Query:   append(filterParams(), api.Param{Name: "find"}, api.Param{Name: "cursor"}, api.Param{Name: "column"}),
		Many:    []string{"column"},
		Serve:   u.listTasks,
	}
	download := list
	download.Pattern, download.Summary, download.Serve = Root+"tasks.jsonl", "Download a page of tasks", u.downloadTasks
	return []api.Route{list, download}
}

func filterParams() (all []api.Param) {
	names, values := task.FilterFields()
	for i, name := range names {
		all = append(all, api.Param{Name: name, Does: values[i]})
	}
	return all
}

// list holds the parts of the page of tasks.
type list struct {
	Find string
	// FindWrong says what is wrong with the text of the search box.
	FindWrong string
	// Unknown is the id that was looked for, where no node has such a task in memory; "" = one has, or it is no id.
	Unknown events.TaskID
	Fields  []filterField
	Filters int // fields that are set
	Columns []column
	Tasks   []task.Task
	Query   url.Values
	Offer   offer  // for the rows that are selected
	All     offer  // for all that match
	Cursor  string // of the next page; "" = there is none
	// Statuses counts the tasks of the behavior of the filter, or all; nil = they are not known.
	Statuses []statusCount
	Partial  bool // they count the newest tasks alone
}

// filterField is a field of the filter as it was typed.
type filterField struct {
	Name, Value, Does string
	Options           []string // that it may have; nil = any text
	Wrong             string   // what is wrong with it
}

// column is a column of the table.
type column struct {
	Name  string
	Shown bool
}

// columnNames lists the columns, and usualColumns those that are shown where none is chosen.
var (
	columnNames = []string{
		"behavior", "status", "substatus", "since", "priority", "attempt", "failures", "progress", "creator", "tags", "created",
		"starts", "started", "ended", "deadline", "node", "error",
	}
	usualColumns = []string{"behavior", "status", "substatus", "since", "attempt", "node"}
)

var optionsOf = map[string][]string{
	"status":    {"CREATED", "RUNNING", "SUCCESS", "FAILURE"},
	"substatus": task.Substatuses(),
	"work":      {"true"},
}

func (u *UI) listTasks(c *api.Call) error {
	l := u.look(c, "Tasks", "Tasks")
	query := c.Request().URL.Query()
	body := list{Find: strings.TrimSpace(query.Get("find")), Query: query}
	var found events.TaskID
	var notFound error
	var finding sync.WaitGroup
	finding.Go(func() { found, notFound = l.find(body.Find) })
	of := url.Values{"behavior": {query.Get("behavior")}}
	var counted api.Behaviors
	var uncounted error
	finding.Go(func() { uncounted = l.get("/v1/behaviors?"+of.Encode(), &counted) })
	page, wrong, err := l.tasks(query, body.Find)
	finding.Wait()
	if found != "" {
		return c.Redirect(l.TaskAt(found))
	}
	if p, refused := errors.AsType[*problem.Problem](notFound); refused && p.Type == problem.NotFound {
		body.Unknown, notFound = events.TaskID(body.Find), nil
	}
	if err := l.miss("task "+body.Find, notFound); err != nil {
		return err
	}
	if err := l.miss("tasks", err); err != nil {
		return err
	}
	if wrong != nil && wrong.Field == "find" && notFound == nil {
		body.FindWrong = strings.TrimPrefix(wrong.Error(), "find: ")
	}
	for _, p := range filterParams() {
		f := filterField{
			Name:    p.Name,
			Value:   query.Get(p.Name),
			Does:    p.Does,
			Options: optionsOf[p.Name],
		}
		if wrong != nil && wrong.Field == p.Name {
			f.Wrong = wrong.Error()
		}
		if f.Value != "" {
			body.Filters++
		}
		body.Fields = append(body.Fields, f)
	}
	if wrong != nil && wrong.Field != "find" {
		why := wrong.Error()
		if slices.ContainsFunc(body.Fields, func(f filterField) bool { return f.Wrong != "" }) { // that field says it
			why = "tasks: not asked for, the filter is wrong"
		}
		l.Missing = append(l.Missing, why)
	}
	if l.May("operator") {
		body.Offer.Actions = actions
		if wrong == nil && len(body.Filter()) > 0 {
			body.All.Actions = ofMatching()
		}
	}
	if l.misses("counts", uncounted); uncounted == nil {
		l.lacks("counts", counted.Missing)
		body.Partial = counted.Partial
		body.Statuses, _ = sums(counted.Counts)
	}
	body.Columns = columnsOf(query["column"])
	body.Tasks = page.Tasks
	l.lacks("tasks", page.Missing)
	if !page.Through {
		body.Cursor = page.Cursor
	}
	return l.show("tasks", body)
}

// tasks lists the tasks of a page. A filter or cursor that cannot be is no error: wrong says what it is.
func (l *look) tasks(query url.Values, find string) (page api.TaskPage, wrong *problem.Problem, err error) {
	ask := url.Values{"limit": {tasksPerPage}}
	for _, p := range append(filterParams(), api.Param{Name: "cursor"}) {
		if text := query.Get(p.Name); text != "" {
			ask.Set(p.Name, text)
		}
	}
	switch {
	case find == "":
	case ask.Get("affinity-prefix") != "":
		return page, fieldProblem("find", "want it or affinity-prefix, not both"), nil
	case strings.Contains(find, "/"): // no affinity begins so
		text := "there is no task " + find
		if events.TaskID(find).Validate() == nil { // it may have been forgotten
			text = "no node has a task " + find + " in memory"
			if l.By.Limited() {
				text += ", or the token is not for it"
			}
		}
		return page, fieldProblem("find", text), nil
	default:
		ask.Set("affinity-prefix", find)
	}
	err = l.get("/v1/tasks?"+ask.Encode(), &page)
	p, refused := errors.AsType[*problem.Problem](err)
	if !refused || p.Status != http.StatusBadRequest {
		return page, nil, err
	}
	if find != "" && p.Field == "affinity-prefix" {
		p = fieldProblem("find", strings.TrimPrefix(p.Error(), "affinity-prefix: "))
	}
	return page, p, nil
}

// find returns the id that a text is, if some node has such a task in memory; "" = it is no id. It does not search the
// journal, since a page that refreshes itself would do so again and again.
func (l *look) find(text string) (events.TaskID, error) {
	id := events.TaskID(text)
	if text == "" || id.Validate() != nil {
		return "", nil
	}
	var t task.Task
	err := l.get("/v1/tasks/"+pathOf(id), &t)
	return t.ID, err
}

func columnsOf(chosen []string) (all []column) {
	if len(chosen) == 0 {
		chosen = usualColumns
	}
	for _, name := range columnNames {
		all = append(all, column{name, slices.Contains(chosen, name)})
	}
	return all
}

// Shows reports whether the table has a column.
func (l list) Shows(name string) bool { return slices.Contains(l.Columns, column{name, true}) }

// Says reports whether the status of a task has to say that it is suspended: its substatus may say that beside it.
func (l list) Says(t task.Task) bool {
	return t.Suspended && !(t.Substatus == task.SubSuspended && l.Shows("substatus"))
}

// Row returns the value of the box that selects a task.
func (l list) Row(t task.Task) string { return fmt.Sprintf("%s %s", t.Version, t.ID) }

// Filter returns the fields of the filter that select what the page lists.
func (l list) Filter() (set []filterField) {
	for _, f := range l.Fields {
		if f.Name == "affinity-prefix" && f.Value == "" {
			f.Value = l.Find
		}
		if f.Value != "" {
			set = append(set, f)
		}
	}
	return set
}

// Of returns the address of the tasks of a status, with the other fields as they are.
func (l list) Of(status string) string {
	l.Query = maps.Clone(l.Query)
	l.Query.Del("cursor")
	return l.with("status", status)
}

// Next returns the address of the next page.
func (l list) Next() string { return l.with("cursor", l.Cursor) }

// First returns the address of the first page.
func (l list) First() string { return l.with("cursor", "") }

// Download returns the address of the tasks of this page as JSON lines.
func (l list) Download() string {
	return Root + "tasks.jsonl" + strings.TrimPrefix(l.with("cursor", l.Query.Get("cursor")), Root+"tasks")
}

func (l list) with(name, value string) string {
	query := url.Values{}
	for key, values := range l.Query {
		if key != name && strings.Join(values, "") != "" {
			query[key] = values
		}
	}
	if value != "" {
		query.Set(name, value)
	}
	if len(query) == 0 {
		return Root + "tasks"
	}
	return Root + "tasks?" + query.Encode()
}

// lacking is the last line of a download that lacks the tasks of some shards.
type lacking struct {
	Missing []api.Missing `json:"missing"`
}

func (u *UI) downloadTasks(c *api.Call) error {
	l := u.look(c, "Tasks", "Tasks")
	query := c.Request().URL.Query()
	page, wrong, err := l.tasks(query, strings.TrimSpace(query.Get("find")))
	if err == nil && wrong != nil {
		err = wrong
	}
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for _, t := range page.Tasks {
		if err := enc.Encode(t); err != nil {
			return fmt.Errorf("download tasks: %w", err)
		}
	}
	if len(page.Missing) > 0 { // a file that lacks some says so itself
		if err := enc.Encode(lacking{page.Missing}); err != nil {
			return fmt.Errorf("download tasks: %w", err)
		}
	}
	c.Header().Set("Content-Disposition", `attachment; filename="tasks.jsonl"`)
	return c.Asset("application/x-ndjson", lines.Bytes())
}
