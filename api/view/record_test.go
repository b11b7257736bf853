package view_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"taskledger/api/view"
	"taskledger/events"
	"taskledger/ledger"
)

// An event of a record that is no task names the record instead of a task, and all that it says is shown.
func TestEvents_OfEveryRecordAreShown(t *testing.T) {
	bodies := map[events.Kind]events.Body{
		events.KindAcceptedLoss:   &events.AcceptedLoss{Entry: 7, Reason: "torn"},
		events.KindRecovered:      &events.Recovered{Entry: 6, Reason: "torn"},
		events.KindPaused:         &events.Paused{Behavior: "work", Reason: "torn"},
		events.KindUnpaused:       &events.Unpaused{Behavior: "work"},
		events.KindItemAdded:      &events.ItemAdded{ID: 1, Group: "torn", Owner: 7, Data: events.Bytes([]byte("a"))},
		events.KindItemReplaced:   &events.ItemReplaced{From: 1, To: 2, Owner: 7, Data: events.Bytes([]byte("torn"))},
		events.KindItemRemoved:    &events.ItemRemoved{ID: 2, Owner: 7},
		events.KindStoreForgotten: &events.StoreForgotten{Store: "torn", Last: 7},

		events.KindScheduleSet:     &events.ScheduleSet{Plan: events.SchedulePlan{Cron: "torn", Zone: "UTC", Behavior: "work"}},
		events.KindTicked:          &events.Ticked{Decision: events.TickCreated, From: 1000, To: 1000, Run: "torn/tick:1000"},
		events.KindSchedulePaused:  &events.SchedulePaused{Reason: "torn"},
		events.KindScheduleResumed: &events.ScheduleResumed{},
		events.KindBackfillSet:     &events.BackfillSet{From: 1000, To: 2000, Ticks: 2},
		events.KindBackfillEnded:   &events.BackfillEnded{Reason: "torn"},
		events.KindScheduleEnded:   &events.ScheduleEnded{},
		events.KindScheduleDefined: &events.ScheduleDefined{ScheduleSet: events.ScheduleSet{
			Plan: events.SchedulePlan{Cron: "@daily", Zone: "UTC", Behavior: "work"},
		}, Reason: "torn"},
	}
	plain := []events.Kind{
		events.KindUnpaused, events.KindItemRemoved, events.KindScheduleResumed, events.KindBackfillSet,
		events.KindScheduleEnded,
	}
	for _, kind := range events.Kinds() {
		of := kind.Record()
		if of == events.OfTask {
			continue
		}
		body := bodies[kind]
		if body == nil {
			t.Errorf("%s has no sample", kind)
			continue
		}
		v := view.OfEvent(ledger.Event{Event: events.Event{Seq: 1, Body: body, Caller: events.Caller{Principal: "ada"}}})
		if v.Record != of.String() || v.Task != "" || v.Data == nil {
			t.Errorf("%s: %+v", kind, v)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{of.String(), kind.String(), "ada"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s does not show %q: %s", kind, part, text)
			}
		}
		if shown := strings.Contains(string(text), "torn"); shown == slices.Contains(plain, kind) {
			t.Errorf("%s: %s", kind, text)
		}
	}
}
