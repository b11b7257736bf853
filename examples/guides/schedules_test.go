package guides_test

import (
	"context"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/enginetest"
	"taskledger/internal/testcluster"
	"taskledger/schedule"
)

// Purging is the parameter of purge-table.
type Purging struct {
	Table string `json:"table"`
}

// everyNight has orders purged at half past three, whatever node lives.
func everyNight(ctx context.Context, client *engine.Client) error {
	_, _, err := client.Schedules().Set(ctx, "nightly", schedule.Definition{
		Cron:     "0 30 3 * * ?",
		Timezone: "Europe/Berlin",
		Behavior: "purge-table",
		Params:   []byte(`{"table":"orders"}`),
	}, 0)
	return err
}

var purgeTable = behaviors.Define("purge-table", &behaviors.Rules[Purging, behaviors.None]{
	Schedules: map[string]schedule.Definition{"nightly": {
		Cron:     "0 30 3 * * ?",
		Timezone: "Europe/Berlin",
		Params:   []byte(`{"table":"orders"}`),
	}},
})

func TestSchedules_OneInCodeIsThatOfTheGuide(t *testing.T) {
	purge := func(context.Context, Purging) (behaviors.None, error) { return behaviors.None{}, nil }
	n := enginetest.Memory(t, purgeTable.Bind(purge))
	testcluster.Await(t, "the schedule in code is set", func() bool {
		_, err := n.Client.Schedules().Get(t.Context(), "nightly")
		return err == nil
	})
	inCode, err := n.Client.Schedules().Get(t.Context(), "nightly")
	if err != nil {
		t.Fatal(err)
	}
	if err := everyNight(t.Context(), n.Client); err != nil {
		t.Fatal(err)
	}
	if set, err := n.Client.Schedules().Get(t.Context(), "nightly"); err != nil || set.Version != inCode.Version {
		t.Errorf("the same definition has changed it: %+v, %v", set, err)
	}
}
