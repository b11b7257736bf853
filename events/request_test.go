package events_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
)

func TestGolden_TaskAndIDOfARequestAreDerivedAsEver(t *testing.T) {
	var derived strings.Builder
	for _, q := range [][3]string{{"client", "noop", "1"}, {"", "noop", "1"}, {"client", "exec", "1"}, {"client", "noop", "2"}, {"a", "b", "cd"},
		{"a", "b", "c\x00d"}, {"fleet \"7\"", "reindex-all", "Bestellung № 4711 / α"}, {strings.Repeat("p", 256), strings.Repeat("b", 48), strings.Repeat("k", events.MaxKeyBytes)}} {
		id := events.TaskOfRequest(q[0], q[1], q[2])
		one, err := events.TaskInRequest(id, 17)
		if err != nil || id.Validate() != nil {
			t.Errorf("%q: task %q: %v, %v", q, id, id.Validate(), err)
		}
		fmt.Fprintf(&derived, "%q %q %q\n  %s\n  %s\n", q[0], q[1], q[2], id, one)
	}
	for _, q := range []events.Request{{}, {Behavior: "noop"}, {Params: events.JSON([]byte(`{"a":1}`))}, {NotBefore: 1_800_000_000_000}, {Delay: 60_000}, {Priority: 5},
		{"exec", events.JSON([]byte(`[1,2]`)), 1, 2, 3, events.Overrides{}, nil, 0}} {
		fmt.Fprintf(&derived, "%+q\n  %s\n", fmt.Sprintf("{%s %v %d %d %d}", q.Behavior, []byte(q.Params), q.NotBefore, int64(q.Delay), q.Priority), q.ID("key"))
	}
	pinned(t, "request.txt", []byte(derived.String()))
}

func TestTaskOfRequest_TellsItsTextsApart(t *testing.T) {
	seen := map[events.TaskID][3]string{}
	for _, q := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"", "ab", "c"}, {"a", "", "bc"}, {"a", "bc", ""}, {"abc", "", ""}, {"a", "c", "b"}, {"a\x00b", "", "c"},
		{"a", "\xa1b", "c"}} {
		id := events.TaskOfRequest(q[0], q[1], q[2])
		if other, met := seen[id]; met {
			t.Errorf("%q and %q are both task %s", q, other, id)
		}
		seen[id] = q
		if len(id) != 26 || id.Affinity() != string(id) {
			t.Errorf("%q: task %q, want 26 characters without an affinity", q, id)
		}
	}
}

func TestGolden_IDOfRequestsTogetherIsDerivedAsEver(t *testing.T) {
	var derived strings.Builder
	for _, all := range [][]events.Request{nil, {{}}, {{Behavior: "noop"}, {Behavior: "noop", Params: events.JSON([]byte(`{"a":1}`))}}} {
		fmt.Fprintf(&derived, "%d\n  %s\n", len(all), events.RequestsID("key", all))
	}
	pinned(t, "requests.txt", []byte(derived.String()))
}

func TestDerivedFrom_KnowsTheFormOfIDsOfRequests(t *testing.T) {
	derived := events.TaskOfRequest("client", "noop", "1")
	for id, want := range map[events.TaskID]events.TaskID{derived: derived, derived + "/0": derived, derived + "/999": derived, derived + "/1000": "", derived + "/00": "",
		derived + "/-1": "", derived + "/": "", derived + "/ship": "", "": "", "order": "", "order/0": "", "abcdefghijklmnopqrstuvwxyz": "abcdefghijklmnopqrstuvwxyz",
		"abcdefghijklmnopqrstuvwxy1": "", "abcdefghijklmnopqrstuvwxyZ": "", "abcdefghijklmnopqrstuvwxyz2": ""} {
		if of, ok := events.DerivedFrom(id); of != want || ok != (want != "") {
			t.Errorf("%q is derived from %q, %t; want %q", id, of, ok, want)
		}
	}
}

func TestRequestsID_TellsRequestsFromOneAndFromOthers(t *testing.T) {
	one, two := events.Request{Behavior: "a"}, events.Request{Behavior: "b"}
	seen := map[string]int{one.ID("k"): -1}
	for i, all := range [][]events.Request{nil, {one}, {two}, {one, one}, {one, two}, {two, one}, {one, one, one, one, one}} {
		id := events.RequestsID("k", all)
		if other, met := seen[id]; met || events.RequestKey(id) != "k" {
			t.Errorf("requests %d have id %q, as %d has", i, id, other)
		}
		seen[id] = i
	}
}

func TestTaskInRequest_IsOfTheRequestsShardAndWithinItsBounds(t *testing.T) {
	id := events.TaskOfRequest("client", "noop", "many")
	seen := map[events.TaskID]bool{}
	for i := range events.MaxRequestTasks {
		of, err := events.TaskInRequest(id, i)
		if err != nil || of.Validate() != nil || seen[of] || of.Affinity() != string(id) || of.Shard(64) != id.Shard(64) {
			t.Fatalf("task %d is %q: %v", i, of, err)
		}
		seen[of] = true
	}
	for _, i := range []int{-1, events.MaxRequestTasks} {
		if of, err := events.TaskInRequest(id, i); err == nil || !strings.Contains(err.Error(), "want 0 to 999") {
			t.Errorf("task %d is %q: %v, want an error that names the bounds", i, of, err)
		}
	}
	for id, want := range map[events.TaskID]string{
		"":    "nothing on one side",
		"a/b": "has an affinity",
		"a b": "byte 1 is ' '",
		events.TaskID(strings.Repeat("x", events.MaxIDBytes)): "130 bytes exceed",
	} {
		if of, err := events.TaskInRequest(id, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("request %q has task %q: %v, want %q", id, of, err, want)
		}
	}
}

func TestRequest_IDTellsTheKeyAndEveryDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() events.Request {
			return events.Request{
				Behavior: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "behavior"), Params: events.JSON(rapid.SampledFrom([][]byte{nil, {}, []byte("1"), []byte("12")}).Draw(t, "params")),
				NotBefore: events.Millis(rapid.Int64Range(0, 2).Draw(t, "not before")), Delay: time.Duration(rapid.Int64Range(0, 2).Draw(t, "delay")), Priority: rapid.Int64Range(0, 2).Draw(t, "priority"),
				Overrides: events.Overrides{
					MaxAttempts: rapid.IntRange(0, 2).Draw(t, "max attempts"),
					Timeout:     time.Duration(rapid.Int64Range(0, 2).Draw(t, "timeout")),
					Retain:      time.Duration(rapid.Int64Range(0, 2).Draw(t, "retain")),
				},
			}
		}
		q, other, key := draw(), draw(), rapid.StringN(1, -1, events.MaxKeyBytes).Draw(t, "key")
		if one := q; rapid.Bool().Draw(t, "one difference") {
			switch rapid.IntRange(0, 5).Draw(t, "in") {
			case 0:
				one.Behavior = other.Behavior
			case 1:
				one.Params = other.Params
			case 2:
				one.NotBefore = other.NotBefore
			case 3:
				one.Delay = other.Delay
			case 4:
				one.Priority = other.Priority
			case 5:
				one.Overrides = other.Overrides
			}
			other = one
		}
		same := q.Behavior == other.Behavior && string(q.Params) == string(other.Params) && q.NotBefore == other.NotBefore && q.Delay == other.Delay && q.Priority == other.Priority &&
			q.Overrides == other.Overrides
		if id := q.ID(key); (id == other.ID(key)) != same || events.RequestKey(id) != key || len(id) > events.MaxNameBytes {
			t.Fatalf("%+v is %q with key %q, %+v is %q", q, id, events.RequestKey(id), other, other.ID(key))
		}
	})
	for _, text := range []string{"", "r-1", "#", strings.Repeat("x", 40)} {
		if got := events.RequestKey(text); got != text {
			t.Errorf("%q has key %q, want itself: it is no id of a request", text, got)
		}
	}
}
