package stores

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"taskledger/api"
	"taskledger/api/stores/form"
	"taskledger/api/token"
	"taskledger/item"
	"taskledger/store"
)

// The original client has times in nanoseconds, in the field duration; it asks for /group where it wants the names of
// groups, and never escapes them; it sends no Content-Type; it reads why an update or a claim has failed from the
// object error of an answer of status 200; its ids are of 32 bits, and may be 0.

// oldTask is a task as the original client has it.
type oldTask struct {
	ID       int64     `json:"id"`
	Group    form.Text `json:"group"`
	Data     form.Text `json:"data"`
	Duration int64     `json:"duration"` // when it is available, in nanoseconds since 1970
	OwnerID  int64     `json:"ownerid"`
}

// oldUpdate is an update of the original client: all fields of a task are there.
type oldUpdate struct {
	ClientID int64     `json:"clientid"`
	Adds     []oldTask `json:"adds"`
	Updates  []oldTask `json:"updates"`
	Deletes  []int64   `json:"deletes"`
	Depends  []int64   `json:"depends"`
}

// oldClaim is a claim of the original client.
type oldClaim struct {
	ClientID int64     `json:"clientid"`
	Group    form.Text `json:"group"`
	Duration int64     `json:"duration"` // in nanoseconds
	Depends  []int64   `json:"depends"`
}

// oldAnswer is the answer to both, as far as the client reads it.
type oldAnswer struct {
	Tasks []oldTask `json:"tasks,omitzero"`
	Error *oldError `json:"error"`            // null = it was done
	Texts []string  `json:"errors,omitempty"` // for people: the client passes over them
}

// oldError has the ids of the tasks that were in the way. The client cannot read bugs.
type oldError struct {
	Changes []int64 `json:"changes"`
	Deletes []int64 `json:"deletes"`
	Depends []int64 `json:"depends"`
	Owned   []int64 `json:"owned"`
}

const (
	// nobody is the client id 0, beyond all that 32 bits hold. An id below 0 is so far below it.
	nobody = 1 << 32
	// foreign is shown of an owner whose id has more than 32 bits.
	foreign = -1
)

// compat returns the routes of the original client.
func (f *front) compat() []api.Route {
	type handler = func(*api.Call, string) error
	get := func(path, summary string, out any, class api.Class, serve handler, query ...api.Param) api.Route {
		return api.Route{
			Method:  http.MethodGet,
			Pattern: Root + "{name}/compat" + path,
			Summary: summary + ", for the original client",
			Role:    token.Viewer,
			Scope:   api.OneStore,
			Class:   class,
			Large:   true,
			Query:   query,
			Out:     out,
			Serve:   named(serve),
		}
	}
	post := func(path, summary string, most int64, in any, serve handler) api.Route {
		return api.Route{
			Method:  http.MethodPost,
			Pattern: Root + "{name}/compat" + path,
			Summary: summary + ", for the original client",
			Role:    token.Submitter,
			Scope:   api.OneStore,
			MaxBody: most,
			Untyped: true,
			Keyed:   true,
			Aged:    true,
			In:      in,
			Out:     oldAnswer{},
			Serve:   named(serve),
		}
	}
	many := func(c *api.Call, name string) error {
		return f.many(c, name, func(it *item.Item) any { return oldTaskOf(it) })
	}
	limit := api.Param{
		Name:  "limit",
		Does:  "Limits the tasks of the answer; 0 or less stands for all.",
		Is:    api.Integer,
		Least: math.MinInt32,
	}
	owned := api.Param{Name: "owned", Does: "Shows tasks that are not available, too.", Is: api.Boolean}
	task := get("/task/{task}", "Show a task", oldTask{}, api.Short, func(c *api.Call, name string) error {
		it, err := f.one(c, name)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, oldTaskOf(it))
	})
	task.Large = false
	update := post("/update", "Add, change and delete tasks: all of it, or nothing",
		maxUpdate, oldUpdate{}, f.oldUpdate)
	update.Counted = true
	return []api.Route{
		task,
		get("/group", "List the groups that have tasks", []string{}, api.Short, f.groups),
		get("/groups", "List the groups that have tasks", []string{}, api.Short, f.groups),
		get("/tasks/{tasks}", "Show up to 1,000 tasks", []*oldTask{}, api.Pages, many),
		get("/group/{group...}", "List the tasks of a group by id", []oldTask{}, api.Pages, f.oldGroup, limit, owned),
		update,
		post("/claim", "Claim a task of a group for a time", maxClaim, oldClaim{}, f.oldClaim),
	}
}

func oldTaskOf(it *item.Item) oldTask {
	t := oldTask{
		ID:       it.ID,
		Group:    form.Text(it.Group),
		Data:     form.Text(it.Data),
		Duration: math.MaxInt64,
		OwnerID:  it.Owner,
	}
	if int64(it.At) <= math.MaxInt64/int64(time.Millisecond) {
		t.Duration = int64(it.At) * int64(time.Millisecond)
	}
	switch {
	case it.Owner == nobody:
		t.OwnerID = 0
	case it.Owner > nobody: // it is none of its own
		t.OwnerID = foreign
	case it.Owner > math.MaxInt32:
		t.OwnerID = it.Owner - nobody
	}
	return t
}

// oldClientOf returns the client of an id of 32 bits, of which half are below 0.
func oldClientOf(id int64) (int64, error) {
	switch {
	case id == 0:
		return nobody, nil
	case id < math.MinInt32 || id > math.MaxInt32:
		return 0, &store.InvalidError{Field: "clientid", Problem: "want -2147483648 to 2147483647"}
	case id == foreign:
		says := "-1 stands for whoever has an id of more than 32 bits: want another"
		return 0, &store.InvalidError{Field: "clientid", Problem: says}
	case id < 0:
		return id + nobody, nil
	}
	return id, nil
}

// oldWhen rounds a time in nanoseconds to whole milliseconds, away from 0.
func oldWhen(nanos int64) item.When {
	ms := nanos / int64(time.Millisecond)
	switch rest := nanos % int64(time.Millisecond); {
	case rest > 0:
		ms++
	case rest < 0:
		ms--
	}
	return item.When(ms)
}

func (f *front) oldGroup(c *api.Call, name string) error {
	p := item.Page{Group: c.Path("group")}
	limit := 0
	var err error
	if text := c.Param("limit"); !strings.HasPrefix(text, "-") {
		if limit, err = limitOf(text); err != nil {
			return err
		}
	}
	if p.Owned, err = flag(c, "owned"); err != nil {
		return err
	}
	return f.listed(c, name, p, limit, func(it *item.Item) any { return oldTaskOf(it) })
}

func (f *front) oldUpdate(c *api.Call, name string) error {
	var body oldUpdate
	if err := read(c, &body); err != nil {
		return err
	}
	client, err := oldClientOf(body.ClientID)
	if err != nil {
		return err
	}
	u := &item.Update{Client: client, Depends: body.Depends, Deletes: body.Deletes}
	if err := repeated(c, u); err != nil {
		return err
	}
	for _, a := range body.Adds {
		u.Adds = append(u.Adds, item.Add{Group: string(a.Group), At: oldWhen(a.Duration), Data: []byte(a.Data)})
	}
	for _, t := range body.Updates { // its group never changes, whatever is sent
		u.Changes = append(u.Changes, item.Change{ID: t.ID, At: oldWhen(t.Duration), Data: []byte(t.Data)})
	}
	made, err := f.stores.Update(c.Context(), name, u)
	if err != nil {
		return oldConflict(c, err)
	}
	answer := oldAnswer{Tasks: []oldTask{}}
	for i := range made {
		answer.Tasks = append(answer.Tasks, oldTaskOf(&made[i]))
	}
	return c.JSON(http.StatusOK, answer)
}

func (f *front) oldClaim(c *api.Call, name string) error {
	var body oldClaim
	if err := read(c, &body); err != nil {
		return err
	}
	client, err := oldClientOf(body.ClientID)
	if err != nil {
		return err
	}
	if body.Duration > item.MaxDuration.Nanoseconds() {
		most := item.MaxDuration.Nanoseconds()
		says := fmt.Sprintf("%d: want %d at most, in nanoseconds", body.Duration, most)
		return &store.InvalidError{Field: "duration", Problem: says}
	}
	duration := max(item.MinDuration, time.Duration(oldWhen(body.Duration))*time.Millisecond)
	key, age, err := repetition(c)
	if err != nil {
		return err
	}
	it, err := f.claimed(c, name, &item.Claim{
		Client:   client,
		Key:      key,
		Age:      age,
		Group:    string(body.Group),
		Duration: duration,
		Depends:  body.Depends,
	})
	if err != nil {
		return oldConflict(c, err)
	}
	answer := oldAnswer{Tasks: []oldTask{}}
	if it != nil {
		answer.Tasks = append(answer.Tasks, oldTaskOf(it))
	}
	return c.JSON(http.StatusOK, answer)
}

// oldConflict answers with the ids of the tasks that were in the way. The client takes an error without any for
// success, so it never sends one.
func oldConflict(c *api.Call, err error) error {
	refused, is := errors.AsType[*item.ConflictError](err)
	if !is {
		return conflict(c, err)
	}
	why := oldError{
		Changes: []int64{},
		Deletes: []int64{},
		Depends: []int64{},
		Owned:   []int64{},
	}
	answer := oldAnswer{Error: &why}
	for _, p := range refused.Problems {
		answer.Texts = append(answer.Texts, p.String())
		switch {
		case p.Kind == item.Held:
			why.Owned = append(why.Owned, p.ID)
		case p.Field == "depends":
			why.Depends = append(why.Depends, p.ID)
		case p.Field == "deletes":
			why.Deletes = append(why.Deletes, p.ID)
		default:
			why.Changes = append(why.Changes, p.ID)
		}
	}
	return c.JSON(http.StatusOK, answer)
}
