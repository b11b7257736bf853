package schedules_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taskledger/api/operations"
	"taskledger/api/schedules"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/schedule"
)

// shelf lists schedules that nobody changes, in pages that may be short.
type shelf struct {
	operations.Schedules
	all   []schedule.Schedule // by name
	short []int               // bounds the pages, by turns
	pages int
}

func (s *shelf) List(_ context.Context, after string, limit int) ([]schedule.Schedule, bool, error) {
	from := 0
	for from < len(s.all) && s.all[from].Name <= after {
		from++
	}
	to := min(from+min(limit, s.short[s.pages%len(s.short)]), len(s.all))
	s.pages++
	return s.all[from:to], to < len(s.all), nil
}

// The pages of a list together are the schedules that the token is for, by name, and no page names another one.
func TestList_PagesAreWhatTheTokenIsForInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[-.:A_z]{1,3}`)
		behavior := rapid.SampledFrom([]string{"noop", "sleep"})
		names := rapid.SliceOfNDistinct(name, 0, 30, rapid.ID[string]).Draw(t, "names")
		names = slices.DeleteFunc(names, func(n string) bool { return n == "." || n == ".." })
		slices.Sort(names)
		of := &shelf{short: rapid.SliceOfN(rapid.IntRange(1, 5), 1, 5).Draw(t, "short")}
		who := &token.Token{Name: "who", Role: token.Viewer}
		if rapid.Bool().Draw(t, "prefixed") {
			who.Prefix = name.Draw(t, "prefix")
		}
		if rapid.Bool().Draw(t, "of a behavior") {
			who.Behaviors = []string{"noop"}
		}
		var want []string
		for _, n := range names {
			s := schedule.Schedule{Name: n}
			s.Definition.Behavior = behavior.Draw(t, "behavior of "+n)
			of.all = append(of.all, s)
			if who.MayTask(events.ScheduleRecord(n)) && who.MayBehavior(s.Definition.Behavior) {
				want = append(want, n)
			}
		}
		s := serveOf(t, secrets{"who": who}, operations.Direct{}, of, nil)
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		var got []string
		for after := ""; ; {
			var page schedules.Page
			a := s.send("who", "GET", fmt.Sprintf("/v1/schedules?limit=%d&after=%s", limit, url.QueryEscape(after)), "")
			if err := json.Unmarshal(a.Body.Bytes(), &page); err != nil || a.Code != 200 {
				t.Fatalf("after %q: status %d, %s", after, a.Code, a.Body)
			}
			for _, one := range page.Schedules {
				got = append(got, one.Name)
			}
			if after = page.Next; after == "" {
				break
			}
			if len(page.Schedules) != limit || !slices.Contains(want, after) {
				t.Fatalf("a page of %d ends with %q", len(page.Schedules), after)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("listed %q, want %q", got, want)
		}
	})
}
