package taskjson_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"taskledger/collections/taskjson"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

const id = "7a5f6f5c-2f27-5d3e-9d55-0b8f8a3c1e01"

// created is when the task was created whose score the scheduler's documentation shows.
var created = events.MillisOf(time.Date(2021, 3, 10, 22, 13, 32, 456e6, time.UTC))

func run(s task.Status, sub task.Substatus) taskjson.Run {
	return taskjson.Run{
		ID:         "my_source_orders/" + id,
		Source:     "my_source",
		Collection: "orders",
		Base:       300,
		Created:    created,
		Status:     s,
		Substatus:  sub,
	}
}

func text(t *testing.T, r taskjson.Run) string {
	t.Helper()
	of, err := taskjson.Of(&r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOf_HasExactlyTheKeysOfTheDesign(t *testing.T) {
	const want = `{"id":"my_source_orders_` + id + `","source":"my_source","collection":"orders",` +
		`"priority":299998384585588,"created_at":"2021-03-10T22:13:32.456Z","started_at":"","finished_at":"",` +
		`"status":"SCHEDULED"}`
	if got := text(t, run(task.Created, task.SubReady)); got != want {
		t.Errorf("%s", got)
	}
	r := run(task.Success, task.SubFinal)
	r.Started, r.Ended = created+1500, created+61_500
	const ended = `"started_at":"2021-03-10T22:13:33.956Z","finished_at":"2021-03-10T22:14:33.956Z","status":"SUCCESS"}`
	if got := text(t, r); !strings.HasSuffix(got, ended) {
		t.Errorf("%s", got)
	}
}

// Bases and times at the ends of their ranges, and ids whose parts are told apart by nothing, are shown as any other.
func TestOf_ShowsTheEndsOfEveryRange(t *testing.T) {
	const keys = `{"id":"a_b_c_d_` + id + `","source":"a_b","collection":"c_d","priority":`
	for _, f := range []struct {
		base    int64
		created events.Millis
		want    string
	}{
		{1, 1, `1000000000000,"created_at":"1970-01-01T00:00:00.001Z"`},
		{1, events.MaxTick, `746597699201,"created_at":"9999-12-31T23:59:59.999Z"`},
		{events.MaxPriority, 1, `9223371000000000000,"created_at":"1970-01-01T00:00:00.001Z"`},
		{events.MaxPriority, events.MaxTick, `9223370746597699201,"created_at":"9999-12-31T23:59:59.999Z"`},
	} {
		r := taskjson.Run{
			ID:         "a_b_c_d/" + id,
			Source:     "a_b",
			Collection: "c_d",
			Base:       f.base,
			Created:    f.created,
			Status:     task.Created,
			Substatus:  task.SubReady,
		}
		if got := text(t, r); got != keys+f.want+`,"started_at":"","finished_at":"","status":"SCHEDULED"}` {
			t.Errorf("%s", got)
		}
		r.Created = -f.created // a time before 1970
		if got, err := taskjson.Of(&r); err == nil {
			t.Errorf("%+v becomes %+v", r, got)
		}
	}
}

// A run that waits is SCHEDULED whatever its last attempt came to, and has not finished.
func TestOf_TellsEveryStatus(t *testing.T) {
	for _, f := range []struct {
		status task.Status
		sub    task.Substatus
		want   taskjson.Status
	}{
		{task.Created, task.SubReady, taskjson.Scheduled},
		{task.Created, task.SubScheduled, taskjson.Scheduled},
		{task.Created, task.SubSuspended, taskjson.Scheduled},
		{task.Running, task.SubRunning, taskjson.Running},
		{task.Running, task.SubSnoozed, taskjson.Scheduled},
		{task.Running, task.SubLost, taskjson.Scheduled},
		{task.Running, task.SubReleased, taskjson.Scheduled},
		{task.Running, task.SubReady, taskjson.Scheduled},
		{task.Failure, task.SubRetry, taskjson.Scheduled},
		{task.Failure, task.SubReady, taskjson.Scheduled},
		{task.Failure, task.SubSuspended, taskjson.Scheduled},
		{task.Failure, task.SubFinal, taskjson.Failed},
		{task.Failure, task.SubCancelled, taskjson.Failed},
		{task.Success, task.SubCancelled, taskjson.Failed},
		{task.Success, task.SubFinal, taskjson.Success},
	} {
		r := run(f.status, f.sub)
		r.Started, r.Ended = created+1, created+2
		got, err := taskjson.Of(&r)
		finished := got.FinishedAt != 0
		if err != nil || got.Status != f.want || finished != f.want.Final() || got.StartedAt != created+1 {
			t.Errorf("%s, %s: %+v, %v", f.status, f.sub, got, err)
		}
	}
}

func TestOf_RefusesARunOfAnotherCollection(t *testing.T) {
	for _, change := range []func(*taskjson.Run){
		func(r *taskjson.Run) { r.Source = "my" },
		func(r *taskjson.Run) { r.ID = "my_source_orders/tick:1" },
		func(r *taskjson.Run) { r.ID = "my_source_orders" },
		func(r *taskjson.Run) { r.Base = 0 },
		func(r *taskjson.Run) { r.Created = 0 },
	} {
		r := run(task.Created, task.SubReady)
		change(&r)
		if got, err := taskjson.Of(&r); err == nil {
			t.Errorf("%+v becomes %+v", r, got)
		}
	}
}

func TestParseStatus_TakesEitherCase(t *testing.T) {
	for _, s := range []taskjson.Status{taskjson.Scheduled, taskjson.Running, taskjson.Failed, taskjson.Success} {
		for _, text := range []string{string(s), strings.ToLower(string(s))} {
			if got, err := taskjson.ParseStatus(text); err != nil || got != s {
				t.Errorf("%s: %s, %v", text, got, err)
			}
		}
	}
	_, err := taskjson.ParseStatus("CANCELED")
	if err == nil || !strings.Contains(err.Error(), "want SCHEDULED, RUNNING") {
		t.Errorf("%v", err)
	}
}

// The score is the number of the formula, without overflow, for every base and creation that it takes.
func TestScore_IsTheFormulaOverItsWholeRange(t *testing.T) {
	bases := []int64{1, 200, 300, events.MaxPriority}
	times := []events.Millis{1, 999, 1000, created, events.MaxTick}
	check := func(base int64, at events.Millis) {
		want := new(big.Int).Mul(big.NewInt(base), big.NewInt(1e12))
		want.Sub(want, big.NewInt(int64(at)/1000))
		got, err := taskjson.Score(base, at)
		if err != nil || !want.IsInt64() || got != want.Int64() || got <= 0 {
			t.Errorf("base %d, created %d: %d, %v, want %d", base, at, got, err, want)
		}
	}
	for _, base := range bases {
		for _, at := range times {
			check(base, at)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		base := rapid.Int64Range(1, events.MaxPriority).Draw(rt, "base")
		check(base, events.Millis(rapid.Int64Range(1, int64(events.MaxTick)).Draw(rt, "at")))
	})
}

func TestScore_RefusesWhatLiesOutside(t *testing.T) {
	for _, f := range []struct {
		base  int64
		at    events.Millis
		field string
	}{
		{0, created, "priority"},
		{-1, created, "priority"},
		{events.MaxPriority + 1, created, "priority"},
		{math.MaxInt64, created, "priority"},
		{1, 0, "created_at"},
		{1, -1, "created_at"},
		{1, events.MaxTick + 1, "created_at"},
	} {
		score, err := taskjson.Score(f.base, f.at)
		if invalid, is := errors.AsType[*store.InvalidError](err); !is || invalid.Field != f.field {
			t.Errorf("base %d, created %d: %d, %v", f.base, f.at, score, err)
		}
	}
}

// Of two runs that wait, the one of the higher base has the higher score, and of one base the older one.
func TestScore_OrdersByBaseThenAge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(1, events.MaxPriority)
		at := rapid.Int64Range(1, int64(events.MaxTick)/1000)
		b1, b2, s1, s2 := base.Draw(t, "base"), base.Draw(t, "base"), at.Draw(t, "seconds"), at.Draw(t, "seconds")
		one, err1 := taskjson.Score(b1, events.Millis(s1*1000))
		two, err2 := taskjson.Score(b2, events.Millis(s2*1000))
		if err1 != nil || err2 != nil || (one > two) != (b1 > b2 || b1 == b2 && s1 < s2) {
			t.Fatalf("%d of %d at %d, %d of %d at %d: %v, %v", one, b1, s1, two, b2, s2, err1, err2)
		}
	})
}

func TestShown_IsReadBack(t *testing.T) {
	for _, collection := range []string{"a_b", "my_source_orders", "A.b:c-d_e_f", "__", strings.Repeat("c", 64)} {
		inside := taskjson.IDOf(collection, uuid.MustParse(id))
		shown, err := taskjson.Shown(inside)
		if err != nil || shown != collection+"_"+id || inside.Validate() != nil || events.TaskID(shown).Validate() != nil {
			t.Fatalf("%s is shown as %s, %v", inside, shown, err)
		}
		if back, err := taskjson.Read(shown); err != nil || back != inside {
			t.Errorf("%s is read as %s, %v", shown, back, err)
		}
	}
}

func TestRead_RefusesWhatShownNeverWrites(t *testing.T) {
	for _, text := range []string{
		"", "_", id, "_" + id, "a_b", "a_b_", "a_b/" + id, "a_b_" + strings.ToUpper(id), "a_b_{" + id + "}",
		"a_b_" + strings.ReplaceAll(id, "-", ""), "a_b_urn:uuid:" + id, "a b_" + id, "a_b_" + id + "0",
		strings.Repeat("c", 65) + "_" + id,
	} {
		if got, err := taskjson.Read(text); err == nil || got != "" {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}
