package schedules_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/schedules"
	"taskledger/events"
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
			page, others, err := client.List(t.Context(), after, limit)
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
