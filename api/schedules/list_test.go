package schedules_test

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/schedules"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/schedule"
)

// shelf lists schedules in pages that may be short. Nobody changes its schedules.
type shelf struct {
	operations.Schedules
	all   []schedule.Schedule // by name
	short []int               // bounds the pages, by turns
	pages int
}

func (s *shelf) List(
	_ context.Context, f schedule.Filter, after string, limit int,
) (page []schedule.Schedule, more bool, err error) {
	most := min(limit, s.short[s.pages%len(s.short)])
	s.pages++
	for i := range s.all {
		switch one := &s.all[i]; {
		case one.Name <= after || !selects(f, one):
		case len(page) == most:
			return page, true, nil
		default:
			page = append(page, *one)
		}
	}
	return page, false, nil
}

// selects reports whether a filter selects a schedule.
func selects(f schedule.Filter, s *schedule.Schedule) bool {
	return strings.HasPrefix(s.Name, f.Prefix) && (f.Behavior == "" || f.Behavior == s.Definition.Behavior) &&
		(!f.Paused || s.Paused != nil)
}

// The pages of a list together are the schedules that the filter selects and the token is for, by name, and no page
// names another one.
func TestList_PagesAreWhatIsSelectedAndTheTokenIsForInOrder(t *testing.T) {
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
		filter, query := schedule.Filter{}, url.Values{}
		if rapid.Bool().Draw(t, "filter by prefix") {
			filter.Prefix = name.Draw(t, "prefix of the filter")
			query.Set("prefix", filter.Prefix)
		}
		if rapid.Bool().Draw(t, "filter by behavior") {
			filter.Behavior = behavior.Draw(t, "behavior of the filter")
			query.Set("behavior", filter.Behavior)
		}
		if filter.Paused = rapid.Bool().Draw(t, "filter by pauses"); filter.Paused {
			query.Set("paused", "true")
		}
		var want []string
		for _, n := range names {
			s := schedule.Schedule{Name: n}
			s.Definition.Behavior = behavior.Draw(t, "behavior of "+n)
			if rapid.Bool().Draw(t, "paused: "+n) {
				s.Paused = &schedule.Pause{}
			}
			of.all = append(of.all, s)
			if selects(filter, &s) && who.MayTask(events.ScheduleRecord(n)) && who.MayBehavior(s.Definition.Behavior) {
				want = append(want, n)
			}
		}
		s := serveOf(t, apitest.Secrets{"who": who}, operations.Direct{}, of, nil)
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		var got []string
		for after := ""; ; {
			var page schedules.Page
			query.Set("after", after)
			query.Set("limit", strconv.Itoa(limit))
			a := s.send("who", "GET", "/v1/schedules?"+query.Encode(), "")
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
