package schedules_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/schedules"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
)

// setLarge sets a schedule of which few fit into an answer.
func (o *owner) setLarge(name string) {
	o.t.Helper()
	policy, err := task.Policy{}.Complete()
	if err != nil {
		o.t.Fatal(err)
	}
	plan := events.SchedulePlan{
		Cron:     "0 0 * * * ?",
		Zone:     "UTC",
		Behavior: "work",
		Policy:   policy,
	}
	a := o.turn(&schedules.Set{
		Name:   name,
		Plan:   schedules.EncodePlan(&plan),
		Params: events.JSON([]byte(`"` + strings.Repeat("x", events.MaxScheduleParamBytes-2) + `"`)),
		Next:   int64(o.now + 1_800_000),
	})
	if a[0].Code != command.AnswerOK {
		o.t.Fatalf("set %s: %+v", name, a[0])
	}
}

// One shard tells fewer than it was asked for, as they are large, and another one tells all that it has.
func TestClientList_PagesLeaveOutNoScheduleOfAnyShard(t *testing.T) {
	owners := []*owner{newOwner(t), newOwner(t)}
	var want []string
	for i := range 9 {
		want = append(want, fmt.Sprintf("a%d", i))
		owners[0].setLarge(want[i])
	}
	owners[1].set("a4x", "UTC")
	owners[1].set("z", "UTC")
	want = append(want, "a4x", "z")
	slices.Sort(want)
	client := schedules.New(schedules.Config{
		Read: func(_ context.Context, shard int, c command.Command) (command.Answer, error) {
			o := owners[shard]
			found, _ := o.Answer(c, o.now, command.Budget{Items: 64, Over: func() bool { return false }})
			return found.Answer(), nil
		},
		Shards: len(owners),
	})
	for _, limit := range []int{1, 3, 100} {
		var got []string
		for after, more := "", true; more; {
			page, others, err := client.List(t.Context(), schedule.Filter{}, after, limit)
			if err != nil || len(page) > limit || others && len(page) == 0 {
				t.Fatalf("%d schedules of at most %d, more %t, %v", len(page), limit, others, err)
			}
			for i := range page {
				got = append(got, page[i].Name)
			}
			if more = others; more {
				after = got[len(got)-1]
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q, want %q", limit, got, want)
		}
	}
}

// A list has the schedules of all shards that a filter selects.
func TestClient_ListsWhatAFilterSelects(t *testing.T) {
	o := newOwner(t)
	for _, name := range []string{"a", "b1", "b2", "c"} {
		o.set(name, "UTC")
	}
	if a := o.turn(&schedules.Steer{Name: "b2", Verb: int64(schedules.Pause)}); a[0].Code != command.AnswerOK {
		t.Fatalf("pause: %+v", a[0])
	}
	client := schedules.New(schedules.Config{
		Read: func(_ context.Context, _ int, c command.Command) (command.Answer, error) {
			found, _ := o.Answer(c, o.now, command.Budget{Items: 64, Over: func() bool { return false }})
			return found.Answer(), nil
		},
		Shards: 1,
	})
	for _, c := range []struct {
		filter schedule.Filter
		want   string
	}{
		{schedule.Filter{}, "a b1 b2 c"},
		{schedule.Filter{Prefix: "b"}, "b1 b2"},
		{schedule.Filter{Behavior: "work"}, "a b1 b2 c"},
		{schedule.Filter{Behavior: "wor"}, ""},
		{schedule.Filter{Paused: true}, "b2"},
		{schedule.Filter{Paused: true, Prefix: "c"}, ""},
	} {
		all, more, err := client.List(t.Context(), c.filter, "", 100)
		var names []string
		for i := range all {
			names = append(names, all[i].Name)
		}
		if err != nil || more || strings.Join(names, " ") != c.want {
			t.Errorf("%+v: %q, more %t, %v, want %q", c.filter, names, more, err, c.want)
		}
	}
}

// The first tick is found by the clock of the owner, which decides it, and not by that of whoever sets the schedule.
func TestClient_SetsTheFirstTickByTheClockOfTheOwner(t *testing.T) {
	for _, off := range []time.Duration{-45 * time.Minute, 10 * time.Minute} {
		o := newOwner(t)
		client := schedules.New(schedules.Config{
			Read: func(_ context.Context, _ int, c command.Command) (command.Answer, error) {
				found, _ := o.Answer(c, o.now, command.Budget{Items: 64, Over: func() bool { return false }})
				return found.Answer(), nil
			},
			Ask: func(_ context.Context, _ int, c command.Command) (command.Answer, error) {
				return o.turn(c)[0], nil
			},
			Shards: 1,
			Now:    func() time.Time { return o.now.Time().Add(off) },
		})
		policy, err := task.Policy{}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		for keep := range 2 { // it makes one, and changes it
			plan := events.SchedulePlan{
				Cron:     fmt.Sprintf("0 %d/5 * * * ?", keep),
				Zone:     "UTC",
				Behavior: "work",
				Policy:   policy,
			}
			if _, _, err := client.Set(t.Context(), "often", &schedules.Definition{Plan: plan}); err != nil {
				t.Fatal(err)
			}
			s, err := client.Get(t.Context(), "often", false)
			if err != nil || s.Next <= o.now || s.Next > o.now+300_000 {
				t.Errorf("clock %s off: next %s, it is %s, %v", off, s.Next.Time(), o.now.Time(), err)
			}
		}
	}
}
