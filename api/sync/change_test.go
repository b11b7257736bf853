package sync_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/api/sync"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

const orders = "/tasks/?source=shop&collection=orders"

func TestRun_Answers201WithItsRunAnd200WithOneThatHasNotEnded(t *testing.T) {
	w := newWorld()
	active := w.run("shop", "orders", 0, task.Failure, task.SubRetry)
	s := serve(t, w)
	a := s.want(s.ask("submitter", "POST", orders, "Idempotency-Key", "k"), 201, `{"task_id":"shop_orders_`)
	var told map[string]string
	if err := json.Unmarshal(a.Body.Bytes(), &told); err != nil || len(told) != 1 {
		t.Errorf("%s: %v", a.Body, err)
	}
	want := order{"shop_orders", schedule.ByHand{Key: "k", Priority: 300}, 7}
	if len(w.orders) != 1 || w.orders[0] != want {
		t.Errorf("orders %+v, want %+v", w.orders, want)
	}
	w.sharing = w.tasks[0].ID
	s.want(s.ask("submitter", "POST", orders), 200, `{"task_id":"`+active+`"}`)
	s.want(s.ask("submitter", "POST", orders, "Idempotency-Key", ""), 400, "Idempotency-Key")
}

// A refused order tells when to ask again, and so does an order whose outcome is unknown.
func TestRun_TellsWhenToAskAgain(t *testing.T) {
	w := newWorld()
	s := serve(t, w)
	for _, c := range []struct {
		err    error
		status int
		after  string
	}{
		{&task.OverloadError{Cause: "too much waits", RetryAfter: 1500 * time.Millisecond}, 503, "2"},
		{task.ErrUnknown, 503, "1"},
		{store.ErrUnavailable, 503, "1"},
		{context.DeadlineExceeded, 503, "1"},
		{&task.StateError{Problem: "1,000 runs have not ended"}, 409, ""},
	} {
		w.refuses = fmt.Errorf("run shop_orders: %w", c.err)
		a := s.want(s.ask("submitter", "POST", orders), c.status, `"message":"`)
		if after := a.Header().Get("Retry-After"); after != c.after {
			t.Errorf("%v: Retry-After %q, want %q", c.err, after, c.after)
		}
	}
}

// An order is made again when the definition has changed since it was read, and only a few times.
func TestRun_MeetsAChangedDefinition(t *testing.T) {
	w := newWorld()
	s := serve(t, w)
	w.changes = 2
	s.want(s.ask("submitter", "POST", orders), 201, "task_id")
	w.changes = 100
	s.want(s.ask("submitter", "POST", orders), 409, "changes")
	if w.changes < 90 {
		t.Errorf("asked %d times", 100-w.changes)
	}
}

func TestCancel_EndsARunOnce(t *testing.T) {
	w := newWorld()
	id := w.run("shop", "orders", 0, task.Created, task.SubReady)
	done := w.run("shop", "orders", 0, task.Success, task.SubFinal)
	s := serve(t, w)
	s.want(s.ask("tenant", "POST", "/tasks/"+strings.Replace(id, "orders", "prices", 1)+"/cancel"), 404, "")
	s.want(s.ask("submitter", "POST", "/tasks/"+id+"/cancel"), 200, `{"status":"ok"}`)
	s.want(s.ask("submitter", "POST", "/tasks/"+id+"/cancel"), 409, "FAILED")
	s.want(s.ask("viewer", "GET", "/tasks/"+id), 200, `"status":"FAILED"`)
	s.want(s.ask("submitter", "POST", "/tasks/"+done+"/cancel"), 409, "SUCCESS")
}

func TestSchedules_ShowTheNextFiveTicksOfCollectionsAlone(t *testing.T) {
	w := newWorld()
	s := serve(t, w)
	var all sync.ScheduleList
	if s.read("/schedules/", &all); len(all.Schedules) != 3 {
		t.Fatalf("%+v", all)
	}
	for i, want := range []sync.Schedule{
		{Source: "shop_old", Collection: "orders"},
		{Source: "shop", Collection: "orders", Schedule: "0 0 * ? * *"},
		{Source: "shop", Collection: "prices", Schedule: "0 0 * ? * *"},
	} {
		got := all.Schedules[i]
		if got.Source != want.Source || got.Collection != want.Collection || got.Schedule != want.Schedule || got.Paused {
			t.Errorf("%+v, want %+v", got, want)
		}
		if n := len(got.Next); want.Schedule != "" && n != 5 || want.Schedule == "" && (n != 0 || got.Next == nil) {
			t.Errorf("%s: ticks %v", want.Collection, got.Next)
		}
		for j := 1; j < len(got.Next); j++ {
			if got.Next[j] != got.Next[j-1].Add(time.Hour) {
				t.Errorf("ticks %v", got.Next)
			}
		}
	}
	a := s.want(s.ask("tenant", "GET", "/schedules"), 200, `"collection":"orders"`)
	if strings.Contains(a.Body.String(), "prices") {
		t.Errorf("%s", a.Body)
	}
	s.want(s.ask("sleeper", "GET", "/schedules"), 200, `{"schedules":[]}`)
}

// A schedule that somebody has set by hand is no collection: its runs have ids without a UUID.
func TestRun_OfAScheduleThatNoFileMadeIsOfNoCollection(t *testing.T) {
	w := newWorld()
	w.define("shop", "hand", "")
	by := w.schedules["shop_hand"]
	by.Definition.UUIDs = false
	w.schedules["shop_hand"] = by
	s := serve(t, w)
	s.want(s.ask("submitter", "POST", "/tasks?source=shop&collection=hand"), 400, `"field":"collection"`)
	s.want(s.ask("operator", "POST", "/schedules/shop/hand/pause"), 404, "hand")
	if a := s.ask("viewer", "GET", "/schedules"); len(w.orders) > 0 || strings.Contains(a.Body.String(), "hand") {
		t.Errorf("orders %v, %s", w.orders, a.Body)
	}
}

func TestPause_LastsUntilResume(t *testing.T) {
	w := newWorld()
	s := serve(t, w)
	for verb, paused := range map[string]string{"pause": "true", "resume": "false"} {
		for range 2 {
			a := s.want(s.ask("operator", "POST", "/schedules/shop/orders/"+verb), 200, `"paused":`+paused)
			if got := strings.Count(a.Body.String(), ":00:00.000Z"); got != 5 {
				t.Errorf("%d ticks: %s", got, a.Body)
			}
		}
	}
	for _, path := range []string{"shop/none", "none/orders", "shop_old/prices", "shop/nightly", "shop/old_orders"} {
		s.want(s.ask("operator", "POST", "/schedules/"+path+"/pause"), 404, "not-found")
	}
	s.want(s.ask("tenant", "POST", "/schedules/shop/prices/pause"), 404, "not-found")
	s.want(s.ask("sleeper", "POST", "/schedules/shop/orders/pause"), 403, "forbidden")
}
