package ui_test

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strings"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine/enginetest"
	"taskledger/events"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// rows is a work over as many numbers as its parameter says, in ten buckets: of each an item fails.
var rows = work.Define("rows", nil, work.Partition[int, int]{
	ID:           "all",
	Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 100, Buckets: 10},
	Thresholds:   []work.Threshold{{Counter: "changes", Limit: 1000}},
	Items: func(_ context.Context, n int, b work.Bucket) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := b.From; i < min(b.To, int64(n)); i++ {
				if !yield(int(i), nil) {
					return
				}
			}
		}
	},
	Process: func(_ context.Context, i int) error {
		if i%10 == 7 {
			return behaviors.Code("odd", errors.New("<i>seven</i>"), nil)
		}
		return nil
	},
})

func TestWork_OfAnEmptyClusterSaysHowToFindOne(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	s.want(s.get("viewer", "/ui/work"), 200, "No work among these tasks", "newest were asked: 1.")
	s.submit("noop", "b/1", "{}")
	s.want(s.get("viewer", "/ui/work?find=b%2F1"), 200, `role="alert"`, `value="b/1"`, "noop")
	s.want(s.get("viewer", "/ui/work?find=b"), 200, "No work among these tasks")
	s.want(s.get("viewer", "/ui/work?behavior=No+Such"), 200, `role="alert"`, `value="No Such"`)
	s.want(s.get("viewer", "/ui/work/a"), 404)
}

func TestWork_ShowsPartitionsAndErrorsAndIsSteered(t *testing.T) {
	s := serveWorks(t)
	s.begin("rows", "w/1", "100")
	s.node.Await(t, events.TaskID("w/1"))
	s.want(s.get("viewer", "/ui/work"), 200, `href="/ui/work/w~1"`, "complete")
	if to := s.get("viewer", "/ui/work?find=w%2F1").header.Get("Location"); to != "/ui/work/w~1" {
		t.Error(to)
	}
	got := s.want(s.get("viewer", "/ui/work/w~1"), 200, "10 done with failed items", "<rect", "&lt;i&gt;seven&lt;/i&gt;", "odd", "changes", "90")
	s.wantNot(got, "<i>seven", "/rerun", "/reset")
	s.want(s.get("operator", "/ui/work/w~1"), 200, `action="/ui/work/w~1/rerun"`, `action="/ui/work/w~1/reset"`)
	s.wantNot(s.get("sleeper", "/ui/work"), "w~1")
	s.want(s.get("sleeper", "/ui/work/w~1"), 404)
	next := url.Values{"next": {"/ui/work/w~1"}}
	s.want(s.send("operator", "POST", "/ui/work/w~1/rerun", next), 303)
	s.node.Await(t, events.TaskID("w/1"))
	s.want(s.get("operator", "/ui/work/w~1"), 200, "of failed buckets alone")
	next.Set("what", "run")
	s.want(s.send("operator", "POST", "/ui/work/w~1/reset", next), 303)
	got = s.want(s.get("operator", "/ui/work/w~1"), 200, "reset")
	if strings.Contains(got.text, "10 done with") {
		t.Errorf("the run is still there: %s", clip(got.text))
	}
	s.want(s.send("operator", "POST", "/ui/work/w~1/rerun", next), 409, "Back")
	s.want(s.get("viewer", "/ui/audit"), 200, "WorkReset", "olga", `href="/ui/tasks/w~1"`)
}

// serveWorks is serve on a node that has a work.
func serveWorks(t *testing.T) *server { return serveOn(t, enginetest.Memory(t, rows)) }
