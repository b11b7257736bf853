package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// setSchedulesEvery is the pause between two tries to set the schedules in the code of a node.
const setSchedulesEvery = time.Minute

// scheduled is a behavior that has schedules in its code.
type scheduled interface {
	// Schedules returns definitions by the names of the schedules. Behavior is left out in them.
	Schedules() map[string]schedule.Definition
}

// codeSchedule is a schedule in the code of a behavior.
type codeSchedule struct {
	name       string
	definition schedule.Definition
	hash       string // of the definition
}

// codeSchedules returns the schedules in the code of a behavior, by name. It returns an error for one that nobody may
// set, or whose parameters the behavior refuses.
func codeSchedules(b task.Behavior, now time.Time) (all []codeSchedule, err error) {
	has, is := b.(scheduled)
	if !is {
		return nil, nil
	}
	for name, d := range has.Schedules() {
		d.Behavior = b.ID()
		wrong := func(err error) error {
			return &store.InvalidError{Field: "behavior " + b.ID(), Problem: fmt.Sprintf("schedule %s: %v", name, err)}
		}
		if err := events.ValidateSchedule(name); err != nil {
			return nil, wrong(err)
		}
		if _, err := d.Plan(b.Policy()); err != nil {
			return nil, wrong(err)
		}
		if _, err := b.Plan(d.Params, now); err != nil {
			return nil, wrong(err)
		}
		d.Start, d.End = d.Start.UTC(), d.End.UTC() // in whichever zone they are written
		text, err := json.Marshal(d)
		if err != nil {
			return nil, wrong(err)
		}
		if d.UUIDs { // which has no member
			text = append(text, "UUIDs"...)
		}
		sum := sha256.Sum256(text)
		all = append(all, codeSchedule{
			name:       name,
			definition: d,
			hash:       hex.EncodeToString(sum[:]),
		})
	}
	slices.SortFunc(all, func(a, b codeSchedule) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// codeSchedulesOf returns the schedules in the code of behaviors. It returns an error for one that nobody may set, and
// for one that two behaviors have.
func codeSchedulesOf(behaviors map[string]task.Behavior, now time.Time) (all []codeSchedule, err error) {
	of := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(behaviors)) {
		some, err := codeSchedules(behaviors[id], now)
		if err != nil {
			return nil, err
		}
		for _, s := range some {
			if other, there := of[s.name]; there {
				problem := fmt.Sprintf("schedule %s: behavior %s has one of the name, too", s.name, other)
				return nil, &store.InvalidError{Field: "behavior " + id, Problem: problem}
			}
			of[s.name] = id
		}
		all = append(all, some...)
	}
	return all, nil
}

// setEach sets schedules until ctx ends, each once. What fails is tried again each minute: a node may be present that
// cannot read schedules.
func setEach(
	ctx context.Context,
	left []codeSchedule,
	set func(context.Context, *codeSchedule) error,
	log *slog.Logger,
) {
	ticker := time.NewTicker(setSchedulesEvery)
	defer ticker.Stop()
	for {
		left = slices.DeleteFunc(left, func(s codeSchedule) bool {
			one, cancel := context.WithTimeout(ctx, setSchedulesEvery)
			defer cancel()
			err := set(one, &s)
			if err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "a schedule in code is not set yet", "schedule", s.name, "err", err)
			}
			return err == nil
		})
		if len(left) == 0 {
			ticker.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
