package traffic_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/task"
)

func draw(name string, seed uint64, n int) (all []traffic.Request) {
	for s := traffic.NewSource(name, seed); len(all) < n; {
		all = append(all, s.Next())
	}
	return all
}

func TestSource_DrawsTheSameForTheSameSeed(t *testing.T) {
	if a := draw("a", 7, 500); !reflect.DeepEqual(a, draw("a", 7, 500)) {
		t.Error("two sources of one name and seed differ")
	} else if reflect.DeepEqual(a, draw("b", 7, 500)) || reflect.DeepEqual(a, draw("a", 8, 500)) {
		t.Error("sources of another name or seed are alike")
	}
}

func TestSource_DrawsEveryProfile(t *testing.T) {
	requests := draw("a", 1, 3000)
	submitted := func(r traffic.Request) bool { return r.Verb == history.Submit }
	drawn := map[traffic.Request]int{}
	for _, r := range requests {
		drawn[r]++
	}
	for name, is := range map[string]func(traffic.Request) bool{
		"drawn id":   func(r traffic.Request) bool { return submitted(r) && r.Task == "" },
		"keyed":      func(r traffic.Request) bool { return submitted(r) && r.Key != "" && r.Task == "" },
		"same again": func(r traffic.Request) bool { return r.Key != "" && drawn[r] > 1 },
		"other body": func(r traffic.Request) bool {
			return r.Key != "" && slices.ContainsFunc(requests, func(o traffic.Request) bool { return o.Key == r.Key && o.Params != r.Params })
		},
		"delayed":   func(r traffic.Request) bool { return submitted(r) && r.Delay > 0 },
		"named":     func(r traffic.Request) bool { return submitted(r) && r.Named },
		"run again": func(r traffic.Request) bool { return submitted(r) && r.Again },
		"failing":   func(r traffic.Request) bool { return submitted(r) && r.Params.Fails > 0 },
		"repeated":  func(r traffic.Request) bool { return submitted(r) && r.Params.Repeats > 0 },
		"long":      func(r traffic.Request) bool { return submitted(r) && r.Params.Millis > 3000 },
		"shared": func(r traffic.Request) bool {
			return submitted(r) && slices.ContainsFunc(draw("b", 1, 2000), func(o traffic.Request) bool { return o.Verb == r.Verb && o.Task == r.Task && r.Task != "" })
		},
		"named join": func(r traffic.Request) bool { return submitted(r) && r.Named && !r.Again },
		"terms":      func(r traffic.Request) bool { return submitted(r) && r.Task != "" && r.Priority == 2 },
		"shared key": func(r traffic.Request) bool {
			return submitted(r) && r.Task == "" && slices.ContainsFunc(draw("b", 2, 2000), func(o traffic.Request) bool { return o.Key == r.Key && o.By == r.By })
		},
		"key of two callers": func(r traffic.Request) bool {
			return r.Key != "" && slices.ContainsFunc(requests, func(o traffic.Request) bool { return o.Key == r.Key && o.By != r.By })
		},
		"caller": func(r traffic.Request) bool { return submitted(r) && r.By != "" && !r.Traced },
		"trace":  func(r traffic.Request) bool { return r.Verb == history.Cancel && r.By == "" && r.Traced },
		"pause": func(r traffic.Request) bool {
			return r.Verb == history.Pause && r.Behavior != "" && r.Reason != "" && r.Forbidden == ""
		},
		"unpause":     func(r traffic.Request) bool { return r.Verb == history.Unpause && r.Behavior != "" },
		"settings":    func(r traffic.Request) bool { return r.Verb == history.Settings },
		"forbidden":   func(r traffic.Request) bool { return submitted(r) && r.Forbidden != "" },
		"long reason": func(r traffic.Request) bool { return r.Verb == history.Pause && r.Forbidden != "" },

		"work":   func(r traffic.Request) bool { return submitted(r) && r.Errand && r.Params.Fails > 0 },
		"stream": func(r traffic.Request) bool { return submitted(r) && r.Brook && r.Params.Fails > 0 },
		"stream that goes on": func(r traffic.Request) bool {
			return slices.ContainsFunc(requests, func(o traffic.Request) bool { return r.Brook && o.Brook && o != r && o.Task == r.Task })
		},

		"repeated by its policy": func(r traffic.Request) bool { return submitted(r) && r.Repeat },
		"end of what is repeated": func(r traffic.Request) bool {
			return r.Verb == history.Cancel && slices.ContainsFunc(requests, func(o traffic.Request) bool { return o.Repeat && o.Task == r.Task })
		},

		"schedule": func(r traffic.Request) bool {
			return r.Verb == history.SetSchedule && r.Schedule.Name != "" && r.Schedule.Definition.Cron != "" && r.Schedule.Seen == 0
		},
		"schedule of another version": func(r traffic.Request) bool { return r.Verb == history.SetSchedule && r.Schedule.Seen != 0 },
		"pause of a schedule":         func(r traffic.Request) bool { return r.Verb == history.PauseSchedule && r.Reason != "" },
		"resumption of a schedule":    func(r traffic.Request) bool { return r.Verb == history.ResumeSchedule },
		"end of a schedule":           func(r traffic.Request) bool { return r.Verb == history.DeleteSchedule },
		"run by hand":                 func(r traffic.Request) bool { return r.Verb == history.RunSchedule && r.Key == "" },
		"run by hand with a key":      func(r traffic.Request) bool { return r.Verb == history.RunSchedule && r.Key != "" },
		"backfill":                    func(r traffic.Request) bool { return r.Verb == history.Backfill && r.Schedule.For > time.Second },
		"end of a backfill":           func(r traffic.Request) bool { return r.Verb == history.EndBackfill },
		"read of a schedule":          func(r traffic.Request) bool { return r.Verb == history.GetSchedule },
		"list of schedules":           func(r traffic.Request) bool { return r.Verb == history.ListSchedules && r.Schedule.Name == "" },

		"wait":    func(r traffic.Request) bool { return r.Verb == history.Wait },
		"get":     func(r traffic.Request) bool { return r.Verb == history.Get },
		"cancel":  func(r traffic.Request) bool { return r.Verb == history.Cancel },
		"retry":   func(r traffic.Request) bool { return r.Verb == history.Retry },
		"run now": func(r traffic.Request) bool { return r.Verb == history.RunNow },
		"delete":  func(r traffic.Request) bool { return r.Verb == history.Delete },
		"suspend": func(r traffic.Request) bool { return r.Verb == history.Suspend },
		"resume":  func(r traffic.Request) bool { return r.Verb == history.Resume },
	} {
		if !slices.ContainsFunc(requests, is) {
			t.Errorf("none of %d requests is: %s", len(requests), name)
		}
	}
}

// perform makes one attempt as an engine would, of a node whose session is s1.
func perform(ctx context.Context, t *testing.T, p traffic.Params, number, failures int) (task.Outcome, []traffic.Report) {
	t.Helper()
	params, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var reports []traffic.Report
	b := traffic.Behaviors(0, func(r traffic.Report) { reports = append(reports, r) })[0]
	var joined string
	log := slog.New(&traffic.Sessions{Handler: slog.NewTextHandler(io.Discard, nil), Joined: func(id string) { joined = id }})
	out := b.Run(ctx, task.Attempt{Task: "t", Number: number, Failures: failures, Policy: b.Policy(), Params: params,
		Token: events.Position{Shard: 1, Ref: events.RefOf(2, 3)}, Log: log.With("node", "a").With("session", "s1").With("task", "t")})
	if joined != "s1" {
		t.Errorf("session %q has begun, want s1", joined)
	}
	return out, reports
}

func TestWork_ReportsWhatTheEngineIsTold(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		name             string
		ctx              context.Context
		params           traffic.Params
		number, failures int
		outcome          string
		final, last      bool
	}{
		{"success", t.Context(), traffic.Params{}, 1, 0, `="1.2.3"`, false, true},
		{"repetition", t.Context(), traffic.Params{Repeats: 1}, 1, 0, `="1.2.3"`, false, false},
		{"last repetition", t.Context(), traffic.Params{Repeats: 1}, 2, 0, `="1.2.3"`, false, true},
		{"failure", t.Context(), traffic.Params{Fails: 9}, 1, 0, "!failed", false, false},
		{"last failure", t.Context(), traffic.Params{Fails: 9}, 4, 3, "!failed", true, true},
		{"after failures", t.Context(), traffic.Params{Fails: 2}, 3, 2, `="1.2.3"`, false, true},
		{"stopped", stopped, traffic.Params{Millis: 60_000}, 1, 0, "", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, reports := perform(c.ctx, t, c.params, c.number, c.failures)
			if len(reports) != 2 || !reports[0].Goes || reports[0].End != 0 || reports[1].Goes {
				t.Fatalf("reports %+v, want a begin and an end", reports)
			}
			r := reports[1]
			if r.Node != "s1" || r.Task != "t" || r.Begin == 0 || r.End < r.Begin || r.Outcome != c.outcome || r.Final != c.final || r.Last != c.last {
				t.Errorf("report %+v", r)
			}
			if last := out.Wait == 0 && c.outcome != ""; last != c.last {
				t.Errorf("outcome %+v, want the last: %t", out, c.last)
			}
		})
	}
}
