package notice_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/notice"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/name"
	"taskledger/store"
)

// book holds the log.
type book struct{ bytes.Buffer }

func newBook() (*book, *notice.Log) {
	b := new(book)
	return b, notice.New(slog.New(slog.NewJSONHandler(b, nil)))
}

// lines returns what was logged since the last call.
func (b *book) lines(t *testing.T) (all []map[string]any) {
	t.Helper()
	for d := json.NewDecoder(&b.Buffer); ; {
		var line map[string]any
		if err := d.Decode(&line); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
}

func TestSay_LeavesOutWhatNobodyCouldReadAndSaysHowMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := newBook()
		for i := range 1000 {
			log.Say(slog.LevelInfo, "much", "i", i)
		}
		log.Say(slog.LevelInfo, "other")
		lines := b.lines(t)
		if len(lines) != 21 || lines[19]["i"] != 19.0 || lines[20]["msg"] != "other" {
			t.Fatalf("of a thousand lines %d were logged", len(lines)-1)
		}
		time.Sleep(time.Second)
		log.Say(slog.LevelInfo, "much", "i", 1000)
		if lines = b.lines(t); len(lines) != 1 || lines[0]["left_out"] != 980.0 {
			t.Errorf("a second later: %v", lines)
		}
		time.Sleep(time.Second)
		log.Say(slog.LevelInfo, "much", "i", 1001)
		if lines = b.lines(t); len(lines) != 1 || lines[0]["left_out"] != nil {
			t.Errorf("after nothing was left out: %v", lines)
		}
	})
}

func TestFlush_SaysHowMuchWasLeftOutWhenNoLineFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := newBook()
		for range 25 {
			log.Say(slog.LevelInfo, "much")
		}
		log.Leave(slog.LevelInfo, "much", 70)
		b.lines(t)
		log.Flush()
		if lines := b.lines(t); len(lines) != 0 {
			t.Errorf("at once: %v", lines)
		}
		time.Sleep(time.Second)
		log.Flush()
		log.Flush()
		if lines := b.lines(t); len(lines) != 1 || lines[0]["of"] != "much" || lines[0]["left_out"] != 75.0 {
			t.Errorf("a second later: %v", lines)
		}
	})
}

func TestLog_OfNobodyAndOfWhoReadsErrorsAloneSaysNothing(t *testing.T) {
	var none *notice.Log
	var b bytes.Buffer
	for _, log := range []*notice.Log{none, notice.New(slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelError})))} {
		tellEverything(log)
	}
	if b.Len() > 0 {
		t.Errorf("logged %s", &b)
	}
}

// tellEverything has a log say a line, that one node came and another died, that an attempt was lost, and that a task
// failed.
func tellEverything(log *notice.Log) {
	log.Say(slog.LevelInfo, "line")
	log.Leave(slog.LevelInfo, "line", 3)
	node := func(id string) map[string]store.NodeInfo { return map[string]store.NodeInfo{id: {}} }
	log.Members("me", &store.Membership{Revision: 1, Nodes: node("a")}, &store.Membership{Revision: 2, Nodes: node("b")})
	m := notice.NewMishaps(log, 1)
	m.Note(&projection.Task{Kind: &projection.Kind{}}, &events.Event{Body: &events.Lost{}})
	m.Note(&projection.Task{Kind: &projection.Kind{}}, &events.Event{Body: &events.Failed{Run: 1}})
	m.Report()
	log.Flush()
}

// A node logs warnings unless it is told otherwise: whoever reads those alone learns what went wrong, and nothing
// that is as it should be.
func TestLog_WhatWentWrongIsAWarning(t *testing.T) {
	b := new(book)
	tellEverything(notice.New(slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	var got []string
	for _, l := range b.lines(t) {
		got = append(got, l["msg"].(string))
	}
	if want := []string{"a node died", "an attempt was lost", "a task failed for good"}; !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestMembers_TellsWhoCameWhoLeftAndWhoDied(t *testing.T) {
	b, log := newBook()
	nodes := func(revision int64, draining string, ids ...string) *store.Membership {
		m := &store.Membership{Revision: revision, Nodes: map[string]store.NodeInfo{}}
		for _, id := range ids {
			m.Nodes[id] = store.NodeInfo{ID: id, Name: "name of " + id, Draining: id == draining}
		}
		return m
	}
	log.Members("me", nodes(0, ""), nodes(1, "", "me", "old"))
	if lines := b.lines(t); len(lines) != 0 {
		t.Errorf("of the first view: %v", lines)
	}
	log.Members("me", nodes(1, "", "old"), nodes(2, "", "me", "old", "new"))
	log.Members("me", nodes(2, "old", "me", "old", "new"), nodes(3, "", "me", "new"))
	log.Members("me", nodes(3, "", "me", "new"), nodes(4, ""))
	got := map[string]any{}
	for _, l := range b.lines(t) {
		got[l["msg"].(string)] = fmt.Sprint(l["peer"], "/", l["peer_session"])
	}
	if want := map[string]any{"a node came": "name of new/new", "a node left": "name of old/old", "a node died": "name of new/new"}; !maps.Equal(got, want) {
		t.Errorf("said %v, want %v", got, want)
	}
}

func TestMishaps_AreToldOnceTheirEntryIsCommitted(t *testing.T) {
	b, log := newBook()
	m := notice.NewMishaps(log, 3)
	kind := &projection.Kind{Behavior: "pull"}
	note := func(body events.Body) {
		m.Note(&projection.Task{
			ID:          "t/1",
			Kind:        kind,
			Counts:      projection.Counts{Attempt: 4},
			LastAttempt: projection.LastAttempt{LastNode: name.Of("b-abcdefghij")},
		}, &events.Event{Body: body})
	}
	note(&events.Lost{Node: "b-abcdefghij"})
	note(&events.Failed{Error: events.Error{Code: "network", Message: strings.Repeat("é", 150) + "\nstack"}, Run: 1})
	note(&events.Failed{Error: events.Error{Code: "network"}, Next: 5})
	note(&events.Failed{Error: events.Error{Code: events.CodeCancelled}, Run: 1})
	note(&events.Succeeded{})
	if lines := b.lines(t); len(lines) != 0 {
		t.Errorf("before the commit: %v", lines)
	}
	m.Report()
	m.Report()
	lines := b.lines(t)
	if len(lines) != 2 {
		t.Fatalf("said %v", lines)
	}
	lost, failed := lines[0], lines[1]
	if lost["msg"] != "an attempt was lost" || lost["task"] != "t/1" || lost["behavior"] != "pull" || lost["ran_on"] != "b" || lost["shard"] != 3.0 {
		t.Errorf("of the loss: %v", lost)
	}
	if failed["msg"] != "a task failed for good" || failed["code"] != "network" || failed["attempts"] != 4.0 || failed["error"] != strings.Repeat("é", 100) {
		t.Errorf("of the failure: %v", failed)
	}
	for range 1000 {
		note(&events.Lost{Node: "b-abcdefghij"})
	}
	m.Report()
	if lines := b.lines(t); len(lines) > 20 {
		t.Errorf("of a thousand losses in one entry %d lines", len(lines))
	}
}
