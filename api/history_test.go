package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/ledger/pagecursor"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// remembered is a client with the ledger of another cluster, whose tasks its own owners do not know.
type remembered struct {
	operations.Direct
	ledger *ledger.Ledger
}

func (r remembered) Ledger() *ledger.Ledger { return r.ledger }

// serveLife serves the history of the task x, which no owner remembers.
func serveLife(t *testing.T, behavior string, progress int) *server {
	j := testcluster.StartJournals(t, 1)
	j.Fill(0, testcluster.Life(t, "x", behavior, "a-aaaaaaaaaa", progress))
	s, _ := serve(t, func(c *api.Config) {
		c.Client = remembered{c.Client.(operations.Direct),
			ledger.New(ledger.Config{Cluster: store.Cluster{ID: "c", Shards: 1}, Journal: j.Store})}
	})
	return s
}

func TestHistory_StatesAreFoldedFromSoManyEventsAtMost(t *testing.T) {
	t.Parallel()
	s := serveLife(t, "sleep", 10)
	after := func(seq uint64) string {
		c := pagecursor.Cursor{Cluster: "c", Task: "x", Ref: at(seq), Seq: seq, Last: at(12)}
		return "/v1/tasks/x/history?limit=2&cursor=" + c.String()
	}
	s.want(s.send("viewer", "GET", after(5)+"&states=true", nil), 200, `"states":[`)
	s.want(s.send("viewer", "GET", after(100_001)+"&states=true", nil), http.StatusBadRequest,
		"100001 events before the page are to be folded, the limit is 100000")
	// There is no such event, and it is read first.
	for _, path := range []string{after(100_000) + "&states=true", after(100_001)} {
		if a := s.send("viewer", "GET", path, nil); a.status == 200 || a.get(t, "field") == "states" {
			t.Errorf("%s: %s", path, a.text)
		}
	}
}

func TestGet_AStateIsFoldedFromSoManyEventsAtMost(t *testing.T) {
	t.Parallel()
	s := serveLife(t, "sleep", 10)
	s.want(s.send("viewer", "GET", "/v1/tasks/x?seq=12", nil), 200, `"done":12`)
	s.want(s.send("viewer", "GET", "/v1/tasks/x?seq=100000", nil), 404, "no event 100000")
	a := s.want(s.send("viewer", "GET", "/v1/tasks/x?seq=100001", nil), 400,
		"100001 events are to be folded, the limit is 100000")
	if a.get(t, "field") != "seq" {
		t.Errorf("%s", a.text)
	}
}

// silent are owners that answer when they are released.
type silent struct {
	ledger.Owners
	under, most atomic.Int64
	released    chan struct{}
}

func (o *silent) Task(ctx context.Context, _ events.TaskID) (t projection.Task, err error) {
	o.most.Store(max(o.most.Load(), o.under.Add(1)))
	defer o.under.Add(-1)
	select {
	case <-o.released:
		return t, task.ErrNotFound
	case <-ctx.Done():
		return t, ctx.Err()
	}
}

// Old states are made as large answers are, a few at once, also where many are asked for.
func TestGet_StatesAreFoldedAFewAtOnce(t *testing.T) {
	t.Parallel()
	const ofEach, most = 2, 8
	callers := []string{"viewer", "submitter", "operator", "admin", "sleeper"}
	j := testcluster.StartJournals(t, 1)
	j.Fill(0, testcluster.Life(t, "x", "sleep", "a-aaaaaaaaaa", 10))
	o := &silent{released: make(chan struct{})}
	s, _ := serve(t, func(c *api.Config) {
		c.Limits.InFlight = ofEach
		c.Client = remembered{c.Client.(operations.Direct),
			ledger.New(ledger.Config{Cluster: store.Cluster{ID: "c", Shards: 1}, Journal: j.Store, Owners: o})}
	})
	var all sync.WaitGroup
	for i := range ofEach * len(callers) {
		path := []string{"/v1/tasks/x?seq=5", "/v1/tasks/x?at=2026-01-01T00:00:00Z"}[i%2]
		all.Go(func() {
			for released := false; !released; { // the owners may be silent for longer than a request waits for them
				s.want(s.insist(callers[i/ofEach], "GET", path, nil), 200, `"id":"x"`)
				select {
				case <-o.released:
					released = true
				default:
				}
			}
		})
	}
	for _, caller := range callers {
		testcluster.Await(t, "as many as may be are made, and the others wait", func() bool {
			return o.under.Load() >= most &&
				s.send(caller, "GET", "/openapi.json", nil).status == http.StatusTooManyRequests
		})
	}
	close(o.released)
	all.Wait()
	if n := o.most.Load(); n != most {
		t.Errorf("%d were made at once, want %d", n, most)
	}
}

// A token of some behaviors is shown the history of its tasks, and no other, when no owner knows the task any more: by
// what the journal says, not by what a cursor does.
func TestHistory_OfAForgottenTaskIsShownByItsBehavior(t *testing.T) {
	t.Parallel()
	const count = 2200
	for behavior, status := range map[string]int{"sleep": http.StatusOK, "gate": http.StatusNotFound} {
		s := serveLife(t, behavior, count-2)
		for _, order := range []string{"oldest", "newest"} {
			first := "/v1/tasks/x/history?limit=1000&order=" + order
			shown := 0
			for path := first; path != ""; {
				a := s.want(s.send("sleeper", "GET", path, nil), status, "")
				shown += strings.Count(a.text, `"seq":`)
				next, _ := a.get(t, "cursor").(string)
				if path = first + "&cursor=" + next; next == "" {
					path = ""
				}
			}
			if want := map[int]int{http.StatusOK: count}[status]; shown != want {
				t.Errorf("%s, %s first: %d events are shown, want %d", behavior, order, shown, want)
			}
			forged := pagecursor.Cursor{
				Cluster:  "c",
				Task:     "x",
				Newest:   order == "newest",
				Ref:      at(1500),
				Seq:      1500,
				Last:     at(count),
				Behavior: "sleep",
			}
			s.want(s.send("sleeper", "GET", first+"&cursor="+forged.String(), nil), status, "")
		}
	}
}

// at returns where an event of a life of testcluster is.
func at(seq uint64) events.Ref { return events.RefOf(seq, 0) }
