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
	// groupsPerPage bounds the groups that a page shows.
	groupsPerPage = 200
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
			Query:   []api.Param{{Name: "group"}, {Name: "after"}, {Name: "from", Does: "the first group of the page"}},
			Large:   true,
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
	err := l.known(body.Name)
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

// known asks for one task of a store to know that its name is valid, and that its owner answers.
func (l *look) known(name string) error {
	ask := url.Values{"name": {"any"}, "limit": {"1"}}
	return storeProblem(l.get("/store/"+url.PathEscape(name)+"/group?"+ask.Encode(), nil))
}

// groups sums over the groups of a store, and keeps those of a page, which begins with a name.
func (l *look) groups(into *storePage, from string) error {
	ctx, cancel := l.bounded()
	defer cancel()
	q := api.Question{Path: "/store/" + url.PathEscape(into.Name) + "/stats"}
	return storeProblem(api.Elements(ctx, l.api, q, func(g form.Group) error {
		into.All++
		into.Sum.Tasks += g.Tasks
		into.Sum.Available += g.Available
		into.Sum.Waiting += g.Waiting
		into.Sum.Claimed += g.Claimed
		into.Sum.Bytes += g.Bytes
		switch {
		case g.Group < from:
		case len(into.Groups) < groupsPerPage:
			into.Groups = append(into.Groups, groupRow{g, into.at("from", from, "group", g.Group)})
		case into.Next == "":
			into.Next = into.at("from", g.Group)
		}
		return nil
	}))
}

// at returns the address of the page. Its query has those of the names whose values are not empty.
func (p *storePage) at(query ...string) string {
	set := url.Values{}
	for i := 0; i < len(query); i += 2 {
		if query[i+1] != "" {
			set.Set(query[i], query[i+1])
		}
	}
	return storeAt(p.Name) + "?" + set.Encode()
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
	Groups []groupRow  // the groups that this page shows, by name
	From   string      // the name that the page begins with; "" = it is the first page
	Next   string      // address of the next page; "" = there is none
	All    int         // groups of all pages
	Sum    form.Group  // it adds up all groups of the store
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
	body := storePage{Name: name, From: c.Param("from")}
	if err := l.groups(&body, body.From); err != nil {
		return err
	}
	u.remember(c, name)
	if group := c.Param("group"); group != "" {
		var err error
		if body.Group, err = l.items(&body, group, c.Param("after")); err != nil {
			return err
		}
	}
	return l.show("store", body)
}

// items asks for a page of the tasks of a group.
func (l *look) items(of *storePage, group, after string) (*groupItems, error) {
	ask := url.Values{"name": {group}, "owned": {"yes"}, "limit": {strconv.Itoa(itemsPerPage + 1)}}
	if after != "" {
		ask.Set("after", after)
	}
	var all []form.Task
	if err := l.get("/store/"+url.PathEscape(of.Name)+"/group?"+ask.Encode(), &all); err != nil {
		return nil, storeProblem(err)
	}
	page := &groupItems{Name: group}
	for i := range all[:min(len(all), itemsPerPage)] {
		page.Items = append(page.Items, itemOf(&all[i]))
	}
	if len(all) > itemsPerPage {
		last := strconv.FormatInt(all[itemsPerPage-1].ID, 10)
		page.Next = of.at("from", of.From, "group", group, "after", last)
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
