package ui_test

import (
	"context"
	"fmt"
	"html"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/ui"
	"taskledger/bulk"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// matching returns the page that counts what matches, and the form that it has.
func (s *server) matching(secret, query string) (answer, url.Values) {
	s.t.Helper()
	page := s.want(s.get(secret, "/ui/matching?"+query), 200)
	form := url.Values{}
	_, main, _ := strings.Cut(page.text, `action="/ui/jobs"`)
	for _, part := range strings.Split(main, `<input type="hidden" name="`)[1:] {
		name, rest, _ := strings.Cut(part, `" value="`)
		value, _, _ := strings.Cut(rest, `"`)
		if name != "next" {
			form.Set(name, value)
		}
	}
	return page, form
}

// order sends a form that begins a job, once the dashboard runs.
func (s *server) order(secret string, form url.Values) (a answer) {
	s.t.Helper()
	testcluster.Await(s.t, "the dashboard to run", func() bool {
		a = s.send(secret, http.MethodPost, "/ui/jobs", form)
		return a.status != http.StatusServiceUnavailable
	})
	return a
}

// ended waits until the page of a job says that it has ended.
func (s *server) ended(secret, at string) answer {
	s.t.Helper()
	testcluster.Await(s.t, "the change to end", func() bool { return !strings.Contains(s.get(secret, at).text, "data-live") })
	return s.get(secret, at)
}

func TestJob_ChangesAllThatMatchedWhenItBegan(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for i := range 5 {
		s.asleep(fmt.Sprintf("a/%d", i))
	}
	s.asleep("b/1")
	s.want(s.get("operator", "/ui/tasks?affinity=a"), 200, `action="/ui/matching"`, `name="affinity" value="a"`)
	s.want(s.get("operator", "/ui/tasks?find=a"), 200, `action="/ui/matching"`, `name="affinity-prefix" value="a"`)
	s.wantNot(s.get("operator", "/ui/tasks"), `action="/ui/matching"`)
	page, form := s.matching("operator", "affinity=a&operation=cancel&reason=no+more")
	s.want(page, 200, "5 tasks match", "Cancel", "no more", "cannot be undone")
	begun := s.want(s.order("operator", form), 303)
	at := begun.header.Get("Location")
	if again := s.want(s.order("operator", form), 303); again.header.Get("Location") != at {
		t.Error("a form that is sent twice begins two")
	}
	got := s.want(s.ended("operator", at), 200, "It is done", `data-label="Outcome">Changed</td><td class="n" data-label="Tasks">5<`, "no more")
	s.wantNot(got, "Stop</button>", "data-live")
	s.want(s.get("namesake", at), 404)
	s.wantNot(s.get("namesake", "/ui/jobs"), at)
	for i := range 5 {
		if is := s.see(fmt.Sprintf("a/%d", i)); is.Status != task.Failure || is.Error.Message != "no more" {
			t.Errorf("%+v", is)
		}
	}
	if is := s.see("b/1"); is.Status != task.Created {
		t.Errorf("%+v", is)
	}
	s.want(s.get("operator", "/ui/jobs"), 200, at, "is done")
	for _, path := range []string{at, at + "/stop"} {
		method := map[bool]string{true: http.MethodGet, false: http.MethodPost}[path == at]
		s.want(s.send("admin", method, path, nil), 404, "this node knows of no such change of yours")
	}
	s.wantNot(s.want(s.get("admin", "/ui/jobs"), 200, "You have begun none"), at)
	s.want(s.send("operator", http.MethodPost, at+"/stop", nil), 303)
}

// Where nothing matches there is nothing to begin.
func TestMatching_OfNoTaskHasNoForm(t *testing.T) {
	s := serve(t)
	got := s.want(s.get("operator", "/ui/matching?affinity=a&operation=cancel"), 200, "0 tasks match", "Back to the tasks")
	s.wantNot(got, "/ui/jobs", "these 0")
}

func TestJob_OfAnotherNumberThanWasCountedChangesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.asleep("a/1")
	_, form := s.matching("operator", "affinity=a&operation=delete")
	s.asleep("a/2")
	form.Set("exactly", "true")
	at := s.want(s.order("operator", form), 303).header.Get("Location")
	s.want(s.ended("operator", at), 200, "It has failed", "2 tasks match", "none is changed")
	s.see("a/1")
	form.Del("exactly")
	form.Set("once", "another")
	at = s.want(s.order("operator", form), 303).header.Get("Location")
	s.want(s.ended("operator", at), 200, "It is done")
	s.want(s.get("viewer", "/ui/tasks?affinity=a"), 200, "No task matches")
}

func TestJob_SeesWhatItsTokenSees(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.asleep("t1.a/1")
	s.asleep("other/1")
	page, form := s.matching("tenant", "behavior=noop&operation=delete")
	s.want(page, 200, "1 task matches")
	at := s.want(s.order("tenant", form), 303).header.Get("Location")
	s.want(s.ended("tenant", at), 200, "It is done")
	s.see("other/1")
}

func TestJob_ThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.asleep("a/1")
	for query, says := range map[string]string{
		"operation=cancel":                       "all tasks would match",
		"affinity=a":                             "operation",
		"affinity=a&operation=explode":           "explode",
		"affinity=a&operation=suspend":           "operation",
		"status=DON&operation=cancel":            "status",
		"affinity=a&operation=cancel&colour=red": "colour",
	} {
		s.want(s.get("operator", "/ui/matching?"+query), 400, says)
		form, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if query != "status=DON&operation=cancel" && query != "affinity=a&operation=suspend" { // a job says that itself
			s.want(s.send("operator", http.MethodPost, "/ui/jobs", form), 400, says)
		}
	}
	form := url.Values{"operation": {"cancel"}, "status": {"DON"}}
	at := s.want(s.order("operator", form), 303).header.Get("Location")
	s.want(s.ended("operator", at), 200, "It has failed", "status")
	form.Set("counted", "many")
	s.want(s.send("operator", http.MethodPost, "/ui/jobs", form), 400, "counted")
	s.want(s.get("operator", "/ui/jobs/none"), 404, "The history of each task tells")
	if now := s.see("a/1"); now.Status != task.Created {
		t.Errorf("%+v", now)
	}
}

// broken is a cluster in which a change of all that match breaks off once, after three tasks.
type broken struct {
	operations.Client
	mu      sync.Mutex
	asked   []bulk.Options
	refuses int // so many changes that go on
}

func (b *broken) Each(_ context.Context, _ task.Filter, _ task.Operation, o bulk.Options) iter.Seq2[bulk.Report, error] {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, o)
	refuses := o.Cursor != "" && b.refuses > 0
	if refuses {
		b.refuses--
	}
	return func(yield func(bulk.Report, error) bool) {
		switch {
		case o.DryRun:
			yield(bulk.Report{Matched: 5}, nil)
		case o.Cursor == "":
			if yield(bulk.Report{Cursor: "c0"}, nil) {
				yield(bulk.Report{Matched: 3, Changed: 3, Cursor: "<c3>"}, fmt.Errorf("shard 1: %w", store.ErrUnavailable))
			}
		case refuses:
			yield(bulk.Report{}, store.ErrUnavailable)
		default:
			yield(bulk.Report{Matched: 2, Changed: 2}, nil)
		}
	}
}

// goOn returns the form of the page of a job that does what is left.
func goOn(page answer) url.Values {
	next := url.Values{}
	_, main, _ := strings.Cut(page.text, `action="/ui/jobs"`)
	for _, part := range strings.Split(main, `<input type="hidden" name="`)[1:] {
		name, rest, _ := strings.Cut(part, `" value="`)
		value, _, _ := strings.Cut(rest, `"`)
		if name != "next" {
			next.Set(name, html.UnescapeString(value))
		}
	}
	return next
}

// Both the page of the job and that of the one that went on in vain lead to what is left.
func TestJob_ThatWentOnInVainGoesOnAgain(t *testing.T) {
	t.Parallel()
	client := &broken{refuses: 2}
	s := serve(t, func(cfg *api.Config, _ *ui.Config) { client.Client, cfg.Client = cfg.Client, client })
	_, form := s.matching("operator", "affinity=a&operation=cancel")
	at := s.want(s.order("operator", form), 303).header.Get("Location")
	first := s.want(s.ended("operator", at), 200, "It has failed", "Go on from there")
	second := s.want(s.order("operator", goOn(first)), 303).header.Get("Location")
	got := s.want(s.ended("operator", second), 200, "It has failed", "Go on from there", "keep this address", "of about 2")
	third := s.want(s.order("operator", goOn(got)), 303).header.Get("Location")
	s.want(s.ended("operator", third), 200, "It has failed", "Go on from there")
	last := s.want(s.order("operator", goOn(first)), 303).header.Get("Location")
	s.want(s.ended("operator", last), 200, "It is done", "2 of about 2")
}

func TestJob_ThatEndsInTheMiddleGoesOnFromItsCursor(t *testing.T) {
	t.Parallel()
	client := &broken{}
	s := serve(t, func(cfg *api.Config, _ *ui.Config) { client.Client, cfg.Client = cfg.Client, client })
	_, form := s.matching("operator", "affinity=a&operation=cancel&reason=no+more")
	at := s.want(s.order("operator", form), 303).header.Get("Location")
	got := s.want(s.ended("operator", at), 200, "It has failed", "Go on from there",
		`name="cursor" value="&lt;c3&gt;"`, "&lt;c3&gt;</pre>",
		`href="/ui/matching?affinity=a&amp;cursor=%3Cc3%3E&amp;operation=cancel&amp;reason=no&#43;more"`,
		`name="affinity" value="a"`, `name="counted" value="2"`)
	next := goOn(got)
	second := s.want(s.order("operator", next), 303).header.Get("Location")
	if again := s.want(s.order("operator", next), 303).header.Get("Location"); again != second || second == at {
		t.Errorf("%s, and sent twice %s, after %s", second, again, at)
	}
	s.wantNot(s.want(s.ended("operator", second), 200, "It is done", "of about 2"), "Go on from there", "keep this address")
	page, elsewhere := s.matching("operator", "affinity=a&operation=cancel&cursor=%3Cc3%3E")
	s.wantNot(s.want(page, 200, "What is left of a change", "Cancel what is left"), "tasks match", "counted")
	if elsewhere.Get("cursor") != "&lt;c3&gt;" || elsewhere.Get("once") == "" {
		t.Errorf("%v", elsewhere)
	}
	client.mu.Lock()
	defer client.mu.Unlock()
	var told []string
	for _, o := range client.asked {
		told = append(told, fmt.Sprintf("%t %q %q", o.DryRun, o.Cursor, o.Reason))
	}
	if want := []string{`true "" ""`, `false "" "no more"`, `false "<c3>" "no more"`}; !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}

func TestJob_OfADashboardThatDoesNotRunIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	u, err := ui.New(ui.Config{Tokens: everybody})
	if err != nil {
		t.Fatal(err)
	}
	other := s.with(u)
	other.want(other.send("operator", http.MethodPost, "/ui/jobs", url.Values{"operation": {"cancel"}, "affinity": {"a"}}), 503, "begins no changes")
}
