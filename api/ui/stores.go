package ui

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/stores/form"
	"taskledger/api/token"
	"taskledger/events"
)

const (
	// storesCookie names the stores that a viewer has looked at: no list of stores is kept anywhere.
	storesCookie = "stores"
	// maxStores bounds the names that the cookie has, the newest first.
	maxStores = 20
	// itemsPerPage bounds the items of a group that a page has, and maxItemShown the bytes of each.
	itemsPerPage = 25
	maxItemShown = 4 << 10
)

func (u *UI) storesRoutes() []api.Route {
	return []api.Route{
		{
			Method:  http.MethodGet,
			Pattern: Root + "stores",
			Summary: "Ask for the name of a task store",
			Role:    token.Viewer,
			Query:   []api.Param{{Name: "name"}},
			Serve:   u.askStore,
		},
		{
			Method:  http.MethodGet,
			Pattern: Root + "stores/{name}",
			Summary: "Show the groups of a task store, or the tasks of one of them",
			Role:    token.Viewer,
			Scope:   api.OneStore,
			Query:   []api.Param{{Name: "group"}, {Name: "after"}},
			Serve:   u.showStore,
		},
	}
}

// storeNames holds what the page of stores shows.
type storeNames struct {
	Known []string // that the browser has asked for before
	Name  string   // that was typed
	Wrong string   // what is wrong with it
}

func (u *UI) askStore(c *api.Call) error {
	l := u.look(c, "Stores", "Task stores")
	body := storeNames{Name: strings.TrimSpace(c.Param("name"))}
	for _, name := range u.knownStores(c.Request()) {
		if l.By.MayStore(name) {
			body.Known = append(body.Known, name)
		}
	}
	if body.Name == "" {
		return l.show("stores", body)
	}
	_, err := l.groups(body.Name)
	if err == nil {
		return c.Redirect(storeAt(body.Name))
	}
	body.Wrong = problem.Of(err).Error()
	return l.show("stores", body)
}

func storeAt(name string) string { return Root + "stores/" + url.PathEscape(name) }

// StoreAt returns the address of the page of a store.
func (b storeNames) StoreAt(name string) string { return storeAt(name) }

// knownStores returns the names that the cookie has.
func (u *UI) knownStores(r *http.Request) (names []string) {
	for name := range strings.SplitSeq(u.cookie(r, storesCookie), ",") {
		if isStoreName(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names[:min(len(names), maxStores)]
}

// isStoreName reports whether a text may name a store, and stand in a cookie and in a link.
func isStoreName(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r))
	})
}

// remember adds a name to the cookie, as the newest one.
func (u *UI) remember(c *api.Call, name string) {
	known := u.knownStores(c.Request())
	if !isStoreName(name) || len(known) > 0 && known[0] == name {
		return
	}
	known = slices.DeleteFunc(known, func(other string) bool { return other == name })
	known = append([]string{name}, known...)
	u.setCookie(c.Header(), c.Request(), storesCookie, strings.Join(known[:min(len(known), maxStores)], ","), aYear)
}

// groups asks for the groups of a store.
func (l *look) groups(name string) (all []form.Group, err error) {
	err = l.get("/store/"+url.PathEscape(name)+"/stats", &all)
	return all, storeProblem(err)
}

// storeProblem reads what the front of task stores has refused: it has errors of its own form.
func storeProblem(err error) error {
	if err == nil {
		return nil
	}
	p := *problem.Of(err)
	var told form.Errors
	if json.Unmarshal([]byte(p.Detail), &told) == nil && len(told.Errors) > 0 {
		p.Detail = strings.Join(told.Errors, "; ")
	}
	return &p
}

// storePage holds what the page of a store shows.
type storePage struct {
	Name   string
	Groups []groupRow
	Sum    form.Group
	Group  *groupItems // the one whose tasks are shown; nil = none
}

// groupRow is a group with its counts.
type groupRow struct {
	form.Group
	At string // address of its tasks
}

// groupItems has a page of the tasks of a group.
type groupItems struct {
	Name  string
	Items []itemRow
	Next  string // address of the next page; "" = there is none
}

// itemRow is a task of a store as the page shows it.
type itemRow struct {
	form.Task
	Text string // its data, or as much of them as is shown
	Cut  int    // bytes that are not shown
}

func (u *UI) showStore(c *api.Call) error {
	name := c.Path("name")
	l := u.look(c, "Stores", name)
	groups, err := l.groups(name)
	if err != nil {
		return err
	}
	u.remember(c, name)
	body := storePage{Name: name}
	for _, g := range groups {
		body.Groups = append(body.Groups, groupRow{g, storeAt(name) + "?" + url.Values{"group": {g.Group}}.Encode()})
		body.Sum.Tasks += g.Tasks
		body.Sum.Available += g.Available
		body.Sum.Waiting += g.Waiting
		body.Sum.Claimed += g.Claimed
		body.Sum.Bytes += g.Bytes
	}
	if group := c.Param("group"); group != "" {
		body.Group, err = l.items(name, group, c.Param("after"))
		if err != nil {
			return err
		}
	}
	return l.show("store", body)
}

// items asks for a page of the tasks of a group.
func (l *look) items(store, group, after string) (*groupItems, error) {
	ask := url.Values{"name": {group}, "owned": {"yes"}, "limit": {strconv.Itoa(itemsPerPage + 1)}}
	if after != "" {
		ask.Set("after", after)
	}
	var all []form.Task
	if err := l.get("/store/"+url.PathEscape(store)+"/group?"+ask.Encode(), &all); err != nil {
		return nil, storeProblem(err)
	}
	page := &groupItems{Name: group}
	for i := range all[:min(len(all), itemsPerPage)] {
		page.Items = append(page.Items, itemOf(&all[i]))
	}
	if len(all) > itemsPerPage {
		last := strconv.FormatInt(all[itemsPerPage-1].ID, 10)
		page.Next = storeAt(store) + "?" + url.Values{"group": {group}, "after": {last}}.Encode()
	}
	return page, nil
}

func itemOf(t *form.Task) itemRow {
	row := itemRow{Task: *t}
	if t.Data == nil {
		row.Text, row.Cut = "", len(t.Data64)
		return row
	}
	row.Text = *t.Data
	if len(row.Text) > maxItemShown {
		at := maxItemShown
		for !utf8.RuneStart(row.Text[at]) {
			at--
		}
		row.Text, row.Cut = row.Text[:at], len(row.Text)-at
	}
	return row
}

// Since returns since when the first available task of the group is; 0 = none is.
func (g groupRow) Since() events.Millis { return events.Millis(g.Oldest) }

// AvailableAt returns when the task is available to everybody.
func (r itemRow) AvailableAt() events.Millis { return events.Millis(r.Timespec) }
