package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/api/operations"
	"taskledger/bulk"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/item"
	"taskledger/ledger"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/work/progress"
)

// promises are held by every client: each gets a client and a text that ids of its tasks begin with.
var promises = map[string]func(t *testing.T, c operations.Client, by string){
	"SubmitTakesParametersByteByByteAndReturnsTheOutcome": submitReturnsTheOutcome,
	"AFailureComesWithAllThatItTells":                     failureTellsAll,
	"AKeyMakesARepetitionTheSameRequest":                  keyRepeats,
	"ManyAreSubmittedTogether":                            manyTogether,
	"ErrorsAreThoseOfTheEngine":                           errorsOfTheEngine,
	"VerbsChangeATask":                                    verbsChange,
	"APauseIsASetting":                                    pauseIsASetting,
	"ListsComeInPages":                                    listsComeInPages,
	"ManyAreChangedByAFilter":                             manyAreChanged,
	"TheLedgerTellsWhatWas":                               ledgerTells,
	"TheClusterTellsOfItself":                             clusterTells,
	"LogsAreRead":                                         logsAreRead,
	"StoresChangeAndTell":                                 storesChange,
	"SchedulesAreSetAndSteered":                           schedulesSteered,
	"WorksAreToldAndRunAgain":                             worksTold,
	"ARepeatedTaskIsWaitedForUntilItsRunEnds":             repeatedIsWaitedFor,
	"AClosedHandleWaitsForNothing":                        closedHandle,
}

func TestClients_KeepTheSamePromises(t *testing.T) {
	f := start(t)
	for kind, c := range f.clients(t) {
		for name, holds := range promises {
			t.Run(kind+"/"+name, func(t *testing.T) { holds(t, c, kind) })
		}
	}
}

// submit submits a task, which must be taken.
func submit(t *testing.T, c operations.Client, behavior, params string, o task.SubmitOptions) operations.Handle {
	t.Helper()
	h, err := c.SubmitRaw(t.Context(), behavior, []byte(params), o)
	if err != nil {
		t.Fatalf("submit %s: %v", o.ID, err)
	}
	return h
}

// outcome waits for a task, which must succeed.
func outcome(t *testing.T, h operations.Handle) string {
	t.Helper()
	defer h.Close()
	result, err := h.Wait(t.Context())
	if err != nil {
		t.Fatalf("wait for %s: %v", h.ID(), err)
	}
	return string(result)
}

func submitReturnsTheOutcome(t *testing.T, c operations.Client, by string) {
	id := events.TaskID(by + ".out/1")
	const params = `{ "a": 1,  "b": "<&>` + "\u2028" + `" }`
	h := submit(t, c, "echo", params, task.SubmitOptions{ID: id, Priority: 3})
	if h.ID() != id || h.Joined() || h.Repeated() {
		t.Errorf("submitted %s, joined %v, repeated %v", h.ID(), h.Joined(), h.Repeated())
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(outcome(t, h)), &got); err != nil || got["b"] != "<&>\u2028" {
		t.Errorf("outcome %v, %v", got, err)
	}
	for ev, err := range c.Ledger().History(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if b, is := ev.Body.(*events.Created); is {
			if text := string(b.Params[1:]); text != params || b.Priority != 3 { // behind the codec
				t.Errorf("recorded are %q, priority %d", text, b.Priority)
			}
		}
	}
	if again := submit(t, c, "echo", `{}`, task.SubmitOptions{ID: id}); !again.Joined() {
		t.Error("a second submit has not joined")
	}
	if got := outcome(t, c.Attach(id)); !strings.Contains(got, `"a"`) {
		t.Errorf("attached: %s", got)
	}
	drawn := submit(t, c, "echo", `{}`, task.SubmitOptions{})
	if drawn.ID() == "" || outcome(t, drawn) != "{}" {
		t.Errorf("drawn is %s", drawn.ID())
	}
}

func failureTellsAll(t *testing.T, c operations.Client, by string) {
	h := submit(t, c, "fail", `""`, task.SubmitOptions{ID: events.TaskID(by + ".fail")})
	for _, h := range []operations.Handle{h, c.Attach(h.ID())} {
		_, err := h.Wait(t.Context())
		h.Close()
		failed, is := errors.AsType[*task.Error](err)
		if !is || failed.Task != h.ID() || failed.Attempt != 1 || failed.Code != "torn" || failed.Message != "as asked" ||
			failed.Retryable || failed.Properties["file"] != "a" {
			t.Errorf("failed with %#v", err)
		}
	}
}

func keyRepeats(t *testing.T, c operations.Client, by string) {
	o := task.SubmitOptions{RequestKey: by + " order é 4711", Delay: time.Millisecond}
	first := submit(t, c, "echo", `{"a":1}`, o)
	again := submit(t, c, "echo", `{"a":1}`, o)
	if again.ID() != first.ID() || !again.Repeated() || first.Repeated() {
		t.Errorf("first %s, again %s, repeated %v", first.ID(), again.ID(), again.Repeated())
	}
	_, err := c.SubmitRaw(t.Context(), "echo", []byte(`{"a": 1}`), o)
	if !errors.Is(err, task.ErrOtherRequest) {
		t.Errorf("of other bytes: %v", err)
	}
}

func manyTogether(t *testing.T, c operations.Client, by string) {
	one := func(name, id string) task.Request {
		return task.Request{Name: name, Params: []byte(`{"a": 1}`), SubmitOptions: task.SubmitOptions{ID: events.TaskID(id)}}
	}
	all := c.SubmitMany(t.Context(), []task.Request{one("echo", by+".many/1"), one("nobody", by+".many/2"), one("echo", "a b")},
		task.ManyOptions{})
	if all[0].Err != nil || outcome(t, all[0]) == "" {
		t.Errorf("first: %v", all[0].Err)
	}
	if !errors.Is(all[1].Err, task.ErrUnknownBehavior) {
		t.Errorf("second: %v", all[1].Err)
	}
	if _, is := errors.AsType[*store.InvalidError](all[2].Err); !is {
		t.Errorf("third: %v", all[2].Err)
	}
	for _, wrong := range []task.Request{one("nobody", by+".none/2"), one("echo", "a b")} {
		all = c.SubmitMany(t.Context(), []task.Request{one("echo", by+".none/1"), wrong}, task.ManyOptions{AllValid: true})
		if !errors.Is(all[0].Err, task.ErrNoneSubmitted) || all[1].Err == nil {
			t.Errorf("of all or none: %v, %v", all[0].Err, all[1].Err)
		}
	}
	if _, err := c.Get(t.Context(), events.TaskID(by+".none/1")); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("one of none: %v", err)
	}
	keyed := []task.Request{one("echo", ""), one("echo", "")}
	first := c.SubmitMany(t.Context(), keyed, task.ManyOptions{RequestKey: by})
	again := c.SubmitMany(t.Context(), keyed, task.ManyOptions{RequestKey: by})
	for i := range first {
		if first[i].Err != nil || again[i].Err != nil || !again[i].Repeated() || first[i].ID() != again[i].ID() {
			t.Errorf("request %d: %v, %v", i, first[i], again[i])
		}
	}
	tooMany := c.SubmitMany(t.Context(), make([]task.Request, 1001), task.ManyOptions{})
	if _, is := errors.AsType[*task.LimitError](tooMany[1000].Err); !is {
		t.Errorf("too many: %v", tooMany[1000].Err)
	}
	own := one("echo", by+".many/own")
	own.RequestKey = by + " own"
	for i := range 2 {
		got := c.SubmitMany(t.Context(), []task.Request{own}, task.ManyOptions{})[0]
		if got.Err != nil || got.Repeated() != (i == 1) {
			t.Errorf("under a key of its own: %v", got)
		}
	}
}

func errorsOfTheEngine(t *testing.T, c operations.Client, by string) {
	ctx, none := t.Context(), events.TaskID(by+".nothing")
	isInvalid := func(field string) func(error) bool {
		return func(err error) bool {
			e, is := errors.AsType[*store.InvalidError](err)
			return is && e.Field == field
		}
	}
	notFound := func(err error) bool { return errors.Is(err, task.ErrNotFound) }
	ended := submit(t, c, "echo", `{}`, task.SubmitOptions{ID: events.TaskID(by + ".ended")})
	outcome(t, ended)
	_, get := c.Get(ctx, none)
	_, forgotten := c.GetForgotten(ctx, none)
	_, wrong := c.Get(ctx, "a b")
	_, unknown := c.SubmitRaw(ctx, "nobody", nil, task.SubmitOptions{})
	_, large := c.SubmitRaw(ctx, "echo", []byte(`"`+strings.Repeat("x", 300<<10)+`"`), task.SubmitOptions{})
	_, noJSON := c.SubmitRaw(ctx, "echo", []byte(`{},"id":"x"`), task.SubmitOptions{})
	_, cancel := c.Operate(ctx, operations.Cancel, string(ended.ID()), "")
	_, cancelNone := c.Operate(ctx, operations.Cancel, string(none), "")
	_, verb := c.Operate(ctx, "fold", string(none), "")
	_, waits := c.Attach(none).Wait(ctx)
	_, explained := c.Explain(ctx, none)
	_, cursor := c.ListPage(ctx, task.Filter{}, "nonsense")
	_, noSchedule := c.Schedules().Get(ctx, by+"-none")
	_, noWork := c.Works().Work(ctx, ended.ID())
	_, noState := c.Ledger().StateAt(ctx, none, time.Time{})
	_, after := c.Ledger().StateAfter(ctx, ended.ID(), 99)
	for what, e := range map[string]struct {
		err error
		is  func(error) bool
	}{
		"get":         {get, notFound},
		"forgotten":   {forgotten, notFound},
		"wrong id":    {wrong, isInvalid("id")},
		"behavior":    {unknown, func(err error) bool { return errors.Is(err, task.ErrUnknownBehavior) }},
		"large":       {large, func(err error) bool { e, is := errors.AsType[*task.LimitError](err); return is && e.Limit == 256<<10 }},
		"no JSON":     {noJSON, isInvalid("parameters")},
		"cancel":      {cancel, func(err error) bool { _, is := errors.AsType[*task.StateError](err); return is }},
		"cancel none": {cancelNone, notFound},
		"verb":        {verb, func(err error) bool { return err != nil }},
		"wait":        {waits, notFound},
		"explain":     {explained, notFound},
		"cursor":      {cursor, isInvalid("cursor")},
		"schedule":    {noSchedule, func(err error) bool { return errors.Is(err, schedule.ErrNotFound) }},
		"work":        {noWork, notFound},
		"state":       {noState, notFound},
		"event":       {after, notFound},
	} {
		if !e.is(e.err) {
			t.Errorf("%s: %#v, %v", what, e.err, e.err)
		}
	}
}

func verbsChange(t *testing.T, c operations.Client, by string) {
	ctx, id := t.Context(), events.TaskID(by+".verbs/1")
	do := func(verb operations.Verb, reason string) {
		t.Helper()
		if _, err := c.Operate(ctx, verb, string(id), reason); err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
	}
	get := func() task.Task {
		t.Helper()
		now, err := c.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	h := submit(t, c, "echo", `{}`, task.SubmitOptions{ID: id, Delay: time.Hour})
	if e, err := c.Explain(ctx, id); err != nil || e.Why != task.WhyScheduled || e.Since == 0 {
		t.Errorf("explained: %+v, %v", e, err)
	}
	do(operations.Suspend, "a <reason>")
	if now := get(); !now.Suspended || now.SuspendedFor != "a <reason>" || now.ScheduleNotBefore == 0 || now.Status != task.Created {
		t.Errorf("suspended: %+v", now)
	}
	suspended := get()
	do(operations.Resume, "")
	for _, verb := range []operations.Verb{operations.Cancel, operations.Suspend, operations.Resume, operations.Retry, operations.RunNow, operations.Delete} {
		_, err := c.OperateSeen(ctx, verb, &suspended, "")
		if state, refused := errors.AsType[*task.StateError](err); !refused || !state.Changed || state.Task != id {
			t.Errorf("%s of the task as it was: %v", verb, err)
		}
	}
	for _, verb := range []operations.Verb{operations.Pause, operations.Unpause, "fold"} {
		if _, err := c.OperateSeen(ctx, verb, &suspended, ""); err == nil {
			t.Errorf("%s is done to a task", verb)
		}
	}
	if resumed := get(); resumed.Suspended {
		t.Errorf("resumed: %+v", resumed)
	} else if _, err := c.OperateSeen(ctx, operations.RunNow, &resumed, ""); err != nil {
		t.Error(err)
	}
	outcome(t, h)
	do(operations.Retry, "")
	outcome(t, c.Attach(id))
	if now := get(); now.Runs != 2 || now.Attempt != 2 || now.Behavior != "echo" {
		t.Errorf("tried again: %+v", now)
	}
	do(operations.Delete, "")
	if _, err := c.Get(ctx, id); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
	id = events.TaskID(by + ".verbs/2")
	submit(t, c, "echo", `{}`, task.SubmitOptions{ID: id, NotBefore: time.Now().Add(time.Hour)}).Close()
	do(operations.Cancel, "no more")
	_, err := c.Attach(id).Wait(ctx)
	if !errors.Is(err, task.ErrCancelled) {
		t.Errorf("cancelled: %v", err)
	}
}

func pauseIsASetting(t *testing.T, c operations.Client, by string) {
	ctx, name := t.Context(), "paused-"+by
	paused := func() int {
		t.Helper()
		set, err := c.Settings(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return slices.IndexFunc(set.Paused, func(p task.Pause) bool { return p.Behavior == name && p.Reason == "why" && p.Since > 0 })
	}
	if _, err := c.Operate(ctx, operations.Pause, name, "why"); err != nil || paused() < 0 {
		t.Errorf("pause: %v, at %d", err, paused())
	}
	for range 2 { // the second time changes nothing
		if _, err := c.Operate(ctx, operations.Unpause, name, ""); err != nil || paused() >= 0 {
			t.Errorf("unpause: %v, at %d", err, paused())
		}
	}
}

func listsComeInPages(t *testing.T, c operations.Client, by string) {
	ctx := t.Context()
	for i := range 5 {
		outcome(t, submit(t, c, "echo", `{}`, task.SubmitOptions{ID: events.TaskID(fmt.Sprintf("%s.list/%d", by, i))}))
	}
	f := task.Filter{
		Affinity:    by + ".list",
		Status:      task.Success,
		Behavior:    "echo",
		Limit:       2,
		CreatedFrom: time.Now().Add(-time.Hour),
	}
	var ids []string
	cursor := ""
	for range 10 {
		page, err := c.ListPage(ctx, f, cursor)
		if err != nil || len(page.Missing) > 0 || len(page.Tasks) > 2 {
			t.Fatalf("page %+v, %v", page, err)
		}
		for _, one := range page.Tasks {
			ids = append(ids, string(one.ID))
		}
		if cursor = page.Cursor; cursor == "" || page.Through {
			break
		}
	}
	slices.Sort(ids)
	if len(ids) != 5 || ids[0] != by+".list/0" || ids[4] != by+".list/4" {
		t.Errorf("listed are %v", ids)
	}
	counts, err := c.Counts(ctx, "echo")
	is := func(n task.Count) bool { return n.Behavior == "echo" && n.Status == task.Success && n.Tasks >= 5 }
	if err != nil || !slices.ContainsFunc(counts.Rows, is) {
		t.Errorf("counts %+v, %v", counts, err)
	}
	if page, err := c.ListPage(ctx, task.Filter{Behavior: "nobody"}, ""); err != nil || len(page.Tasks) > 0 || !page.Through {
		t.Errorf("of nobody: %+v, %v", page, err)
	}
}

func manyAreChanged(t *testing.T, c operations.Client, by string) {
	ctx, f := t.Context(), task.Filter{Affinity: by + ".each"}
	for i := range 3 {
		outcome(t, submit(t, c, "echo", `{}`, task.SubmitOptions{ID: events.TaskID(fmt.Sprintf("%s.each/%d", by, i))}))
	}
	each := func(op task.Operation, o bulk.Options) (last bulk.Report) {
		t.Helper()
		for r, err := range c.Each(ctx, f, op, o) {
			if err != nil {
				t.Fatal(err)
			}
			last = r
		}
		return last
	}
	if r := each(task.Delete, bulk.Options{DryRun: true}); r.Matched != 3 || len(r.Rows) != 1 || r.Rows[0].Tasks != 3 || r.Cursor != "" {
		t.Errorf("counted: %+v", r)
	}
	if r := each(task.Cancel, bulk.Options{Reason: "why"}); r.Refused != 3 || len(r.Problems) != 3 {
		t.Errorf("refused: %+v", r)
	} else if _, is := errors.AsType[*task.StateError](r.Problems[0]); !is {
		t.Errorf("refused with %v", r.Problems[0])
	}
	if r := each(task.Delete, bulk.Options{}); r.Changed != 3 {
		t.Errorf("changed: %+v", r)
	}
	for r, err := range c.Each(ctx, f, task.Delete, bulk.Options{Cursor: "nonsense"}) {
		if _, is := errors.AsType[*store.InvalidError](err); !is {
			t.Errorf("of a cursor: %+v, %v", r, err)
		}
	}
}

func ledgerTells(t *testing.T, c operations.Client, by string) {
	ctx, id := t.Context(), events.TaskID(by+".ledger/1")
	h := submit(t, c, "echo", `{"a":1}`, task.SubmitOptions{ID: id})
	outcome(t, h)
	l := c.Ledger()
	kinds := func(newest bool) (all []string) {
		t.Helper()
		o := ledger.HistoryOptions{Newest: newest, Limit: 1, States: !newest}
		for more := true; more; more = o.Cursor != "" {
			page, err := l.HistoryPage(ctx, id, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Events {
				if e.Behavior != "echo" || e.Kind() == events.KindSucceeded && e.Node == "" {
					t.Errorf("event %s of behavior %q, node %q", e.Kind(), e.Behavior, e.Node)
				}
				all = append(all, e.Kind().String())
			}
			o.Cursor = page.Next
		}
		return all
	}
	oldest, newest := kinds(false), kinds(true)
	if want := []string{"Created", "Started", "Succeeded"}; !slices.Equal(oldest, want) {
		t.Errorf("oldest first: %v", oldest)
	}
	if slices.Reverse(newest); !slices.Equal(newest, oldest) {
		t.Errorf("newest first, turned: %v", newest)
	}
	if was, err := l.StateAfter(ctx, id, 1); err != nil || was.Status != task.Created {
		t.Errorf("after the first event: %+v, %v", was, err)
	}
	if was, err := l.StateAt(ctx, id, time.Time{}); err != nil || was.Status != task.Success {
		t.Errorf("now: %+v, %v", was, err)
	}
	if _, err := l.StateAt(ctx, id, time.Now().Add(-time.Hour)); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	n := 0
	for ev, err := range l.Replay(ctx, ledger.ReplayOptions{Behavior: "echo", Task: id}) {
		if err != nil || ev.Task != id {
			t.Fatalf("replayed %+v, %v", ev, err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d events are replayed, want 3", n)
	}
	verifications, err := l.Verify(ctx, ledger.VerifyOptions{Archive: true})
	for _, v := range verifications {
		if v.Problem != "" || !v.Compared {
			t.Errorf("shard %d: compared %v, %s", v.Shard, v.Compared, v.Problem)
		}
	}
	if err != nil || len(verifications) == 0 {
		t.Errorf("verified %d shards, %v", len(verifications), err)
	}
	p, err := l.Checkpoint(ctx)
	if err != nil || len(p.Heads) == 0 || p.Cluster == "" {
		t.Fatalf("checkpoint %+v, %v", p, err)
	}
	var file bytes.Buffer
	if err := l.ExportTask(ctx, id, &file, nil, p); err != nil {
		t.Fatal(err)
	}
	if v, err := ledger.VerifyExport(&file, p); err != nil || v.Problem != "" || v.Events != 3 || v.Heads != 1 {
		t.Errorf("export: %+v, %v", v, err)
	}
	file.Reset()
	if err := l.ExportShard(ctx, p.Heads[0].Shard, &file, nil); err != nil {
		t.Fatal(err)
	}
	if v, err := ledger.VerifyExport(&file, p); err != nil || v.Problem != "" || v.Heads != 1 {
		t.Errorf("export of a shard: %+v, %v", v, err)
	}
	if err := l.ExportShard(ctx, 999, &file, nil); err == nil {
		t.Error("a shard that is not there was exported")
	}
}

func clusterTells(t *testing.T, c operations.Client, by string) {
	ctx := t.Context()
	outcome(t, submit(t, c, "echo", `{}`, task.SubmitOptions{ID: events.TaskID(by + ".counted")}))
	nodes, err := c.Nodes(ctx)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("nodes %+v, %v", nodes, err)
	}
	n := nodes[0]
	if n.Name != "a" || !store.IsSessionID(n.ID) || !slices.Contains(n.Behaviors, "echo") || !n.Owner || n.Slots == 0 ||
		n.Reads != ledger.Reads() || time.Since(time.UnixMilli(n.Joined)).Abs() > time.Hour {
		t.Errorf("node %+v", n)
	}
	shards, err := c.Shards(ctx)
	if err != nil || len(shards) == 0 {
		t.Fatalf("shards %+v, %v", shards, err)
	}
	counted := func(s engine.ShardInfo) bool { return len(s.Figures) > 0 && s.Figures[0].Counts[0] > 0 }
	if !slices.ContainsFunc(shards, counted) {
		t.Error("no shard tells figures")
	}
	for i, s := range shards {
		if s.Shard != i || s.Owner != n.ID || s.Problem != "" || s.Entries > 0 && s.Hash == (events.Hash{}) {
			t.Errorf("shard %+v", s)
		}
	}
}

func logsAreRead(t *testing.T, c operations.Client, by string) {
	ctx, id := t.Context(), events.TaskID(by+".log")
	outcome(t, submit(t, c, "echo", `{}`, task.SubmitOptions{ID: id}))
	var told tasklog.Told
	for told.Cursor = ""; len(told.Lines) == 0; { // until the line is stored
		var err error
		s := tasklog.Selection{Attempt: 1, Since: 1, Limit: 10, Cursor: told.Cursor}
		if told, err = c.Log(ctx, id, s); err != nil {
			t.Fatal(err)
		}
	}
	if l := told.Lines[0]; !strings.Contains(l.Text, "echoing") || l.Level != tasklog.Info || l.Attempt != 1 || l.Number != 1 || l.At == 0 {
		t.Errorf("line %+v", l)
	}
	if told, err := c.Log(ctx, id, tasklog.Selection{Level: tasklog.Error}); err != nil || len(told.Lines) > 0 {
		t.Errorf("errors: %+v, %v", told, err)
	}
	if _, err := c.Log(ctx, id+"none", tasklog.Selection{}); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("of no task: %v", err)
	}
}

func storesChange(t *testing.T, c operations.Client, by string) {
	ctx, s, name := t.Context(), c.Stores(), "store-"+by
	made, err := s.Update(ctx, name, &item.Update{Client: 1, Adds: []item.Add{{Group: "g", Data: []byte{0xff}}, {Group: "g"}}})
	if err != nil || len(made) != 2 {
		t.Fatalf("made %+v, %v", made, err)
	}
	it, err := s.Claim(ctx, name, &item.Claim{Client: 2, Group: "g", Duration: time.Minute})
	if err != nil || it == nil || it.Owner != 2 {
		t.Fatalf("claimed %+v, %v", it, err)
	}
	page, more, err := s.Group(ctx, name, item.Page{Group: "g", Owned: true})
	if err != nil || len(page) != 2 || more {
		t.Errorf("group %+v, %v, %v", page, more, err)
	}
	if found, err := s.Items(ctx, name, []int64{it.ID, 999}, true); err != nil || found[0] == nil || found[1] != nil {
		t.Errorf("found %+v, %v", found, err)
	}
	if groups, err := s.Groups(ctx, name, true); err != nil || len(groups) != 1 || groups[0].Claimed != 1 {
		t.Errorf("groups %+v, %v", groups, err)
	}
	_, err = s.Update(ctx, name, &item.Update{Client: 1, Depends: []int64{999}})
	if e, is := errors.AsType[*item.ConflictError](err); !is || e.Problems[0].Kind != item.NotThere {
		t.Errorf("conflict: %v", err)
	}
}

func schedulesSteered(t *testing.T, c operations.Client, by string) {
	ctx, all, name := t.Context(), c.Schedules(), "nightly-"+by
	d := schedule.Definition{
		Cron:     "0 30 3 * * ?",
		Timezone: "UTC",
		Behavior: "echo",
		Params:   json.RawMessage(`{"a": "<"}`),
		UUIDs:    true,
	}
	v, changed, err := all.SetWith(ctx, name, d, schedule.Setting{Seen: schedule.Absent, Reason: "new"})
	if err != nil || !changed || v == 0 {
		t.Fatalf("set: %d, %v, %v", v, changed, err)
	}
	if _, changed, err := all.SetWith(ctx, name, d, schedule.Setting{}); err != nil || changed {
		t.Errorf("set again: %v, %v", changed, err)
	}
	if _, _, err := all.SetWith(ctx, name, d, schedule.Setting{Seen: v + 1}); !errors.Is(err, schedule.ErrChanged) {
		t.Errorf("set what was not seen: %v", err)
	}
	is, err := all.Get(ctx, name)
	if err != nil || is.Version != v || string(is.Definition.Params) == "" || is.Next == 0 || is.Definition.Cron != d.Cron || !is.Definition.UUIDs {
		t.Errorf("got %+v, %v", is, err)
	}
	if found, more, err := all.List(ctx, schedule.Filter{Prefix: name}, "", 10); err != nil || len(found) != 1 || more || !found[0].Definition.UUIDs {
		t.Errorf("listed %+v, %v, %v", found, more, err)
	}
	run, err := all.RunWith(ctx, name, schedule.ByHand{Key: "k", Priority: 5}, v)
	if err != nil || outcome(t, run) == "" {
		t.Errorf("run: %v", err)
	}
	if ran, err := c.Get(ctx, run.ID()); err != nil || ran.Priority != 5 {
		t.Errorf("ran with priority %d, %v", ran.Priority, err)
	}
	if err := all.Steer(ctx, operations.PauseSchedule, name, "full", v); err != nil {
		t.Errorf("pause: %v", err)
	}
	if is, err := all.Get(ctx, name); err != nil || is.Paused == nil || is.Paused.Reason != "full" {
		t.Errorf("paused: %+v, %v", is, err)
	}
	if err := all.Steer(ctx, operations.ResumeSchedule, name, "", 0); err != nil {
		t.Errorf("resume: %v", err)
	}
	to := time.Now().Add(-time.Hour)
	if ticks, err := c.Backfills().Backfill(ctx, name, to.Add(-48*time.Hour), to, 0); err != nil || ticks != 2 {
		t.Errorf("backfill of %d ticks, %v", ticks, err)
	}
	err = all.Steer(ctx, operations.EndBackfill, name, "enough", 0)
	if _, over := errors.AsType[*task.StateError](err); err != nil && !over { // its runs may have ended
		t.Errorf("end of the backfill: %v", err)
	}
	if err := all.Steer(ctx, "fold", name, "", 0); err == nil {
		t.Error("an unknown verb was taken")
	}
	if err := all.Steer(ctx, operations.DeleteSchedule, name, "", 0); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := all.Steer(ctx, operations.DeleteSchedule, name, "", 0); !errors.Is(err, schedule.ErrNotFound) {
		t.Errorf("delete again: %v", err)
	}
}

func worksTold(t *testing.T, c operations.Client, by string) {
	ctx, id := t.Context(), events.TaskID(by+".work")
	outcome(t, submit(t, c, "halves", `{}`, task.SubmitOptions{ID: id}))
	w, err := c.Works().WorkLinear(ctx, id)
	if err != nil || w.State != progress.Complete || w.Items.Done != 99 || w.Items.Failed != 1 || len(w.Partitions) != 1 {
		t.Fatalf("work %+v, %v", w, err)
	}
	page, err := c.Works().WorkFailures(ctx, id, "", 0)
	if err != nil || len(page.Buckets) != 1 || page.Buckets[0].Errors[0].Message != "seven" {
		t.Errorf("failures %+v, %v", page, err)
	}
	if err := c.Works().RerunWork(ctx, id); err != nil {
		t.Errorf("rerun: %v", err)
	}
	outcome(t, c.Attach(id))
	if w, err := c.Works().Work(ctx, id); err != nil || w.Run != 2 && !w.FailedOnly {
		t.Errorf("run again: %+v, %v", w, err)
	}
	if err := c.Works().ResetWork(ctx, id, operations.WorkReset{Thresholds: true}); err != nil {
		t.Errorf("reset: %v", err)
	}
}

func repeatedIsWaitedFor(t *testing.T, c operations.Client, by string) {
	h := submit(t, c, "hourly", `"x"`, task.SubmitOptions{ID: events.TaskID(by + ".hourly")})
	if got := outcome(t, h); got != `"x"` {
		t.Errorf("outcome %s", got)
	}
	if now, err := c.Get(t.Context(), h.ID()); err != nil || now.ScheduleNotBefore == 0 || now.Runs != 1 {
		t.Errorf("after its run: %+v, %v", now, err)
	}
}

func closedHandle(t *testing.T, c operations.Client, by string) {
	h := submit(t, c, "echo", `{}`, task.SubmitOptions{ID: events.TaskID(by + ".closed"), Delay: time.Hour})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := h.Wait(ctx); !errors.Is(err, enough) {
		t.Errorf("of a context that has ended: %v", err)
	}
	h.Close()
	if _, err := h.Wait(t.Context()); !errors.Is(err, task.ErrClosed) {
		t.Errorf("of a handle that is closed: %v", err)
	}
}
