package ui

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"taskledger/api"
	"taskledger/api/token"
	"taskledger/task"
)

// collectionBehavior is the behavior of the schedules that are collections.
const collectionBehavior = "collection"

func (u *UI) collectionsRoutes() []api.Route {
	return []api.Route{{
		Method:  http.MethodGet,
		Pattern: Root + "collections",
		Summary: "List the collections with their latest runs",
		Role:    token.Viewer,
		Scope:   api.ItsTasks,
		Query:   []api.Param{{Name: "source"}, {Name: "after"}},
		Serve:   u.listCollections,
	}}
}

// collectionList holds what the page of collections shows.
type collectionList struct {
	Source      string
	Collections []collection
	Next        string // address of the next page; "" = there is none
	After       bool   // it is not the first page
}

// collection is one of them.
type collection struct {
	scheduleRow
	Source, Collection string
	Latest             *task.Task // its latest run among the newest runs of all; nil = it is not among them
}

// newestRuns bounds the newest runs of all collections among which the page looks for the latest of each.
const newestRuns = "500"

func (u *UI) listCollections(c *api.Call) error {
	l := u.look(c, "Collections", "Collections")
	query := c.Request().URL.Query()
	body := collectionList{Source: strings.TrimSpace(query.Get("source")), After: query.Get("after") != ""}
	ask := url.Values{"behavior": {collectionBehavior}, "limit": {strconv.Itoa(schedulesPerPage)}}
	if body.Source != "" {
		ask.Set("prefix", body.Source+"_")
	}
	if after := query.Get("after"); after != "" {
		ask.Set("after", after)
	}
	var page schedules
	var runs api.TaskPage
	l.parts(
		part{"collections", "/v1/schedules?" + ask.Encode(), &page},
		part{
			"latest runs",
			"/v1/tasks?" + url.Values{"behavior": {collectionBehavior}, "limit": {newestRuns}}.Encode(),
			&runs,
		},
	)
	l.lacks("runs", runs.Missing)
	latest := map[string]*task.Task{}
	for i := range runs.Tasks {
		t := &runs.Tasks[i]
		if of := t.ID.Affinity(); latest[of] == nil {
			latest[of] = t
		}
	}
	for _, s := range page.Schedules {
		if is, ok := collectionOf(s); ok && (body.Source == "" || is.Source == body.Source) {
			is.Latest = latest[s.Name]
			body.Collections = append(body.Collections, is)
		}
	}
	if page.Next != "" {
		body.Next = withQuery(Root+"collections", query, "after", page.Next)
	}
	return l.show("collections", body)
}

// collectionOf returns the collection that a schedule is, as the routes below /sync tell it; false = it is none.
func collectionOf(s scheduleRow) (collection, bool) {
	var params struct {
		Source     string `json:"source"`
		Collection string `json:"collection"`
	}
	is := s.UUIDs && json.Unmarshal(s.Definition.Params, &params) == nil
	return collection{
		scheduleRow: s,
		Source:      params.Source,
		Collection:  params.Collection,
	}, is && params.Source+"_"+params.Collection == s.Name
}
