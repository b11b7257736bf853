package schedules_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/schedule"
)

// moving has one schedule, which another caller changes after each Get.
type moving struct {
	operations.Schedules
	version schedule.Version
	done    int // changes that were not refused
}

func (m *moving) Get(_ context.Context, name string) (schedule.Schedule, error) {
	s := schedule.Schedule{Name: name, Version: m.version}
	s.Definition.Behavior = "noop"
	m.version++
	return s, nil
}

func (m *moving) change(seen schedule.Version) error {
	if seen != 0 && seen != m.version {
		return fmt.Errorf("moving: %w", schedule.ErrChanged)
	}
	m.done++
	return nil
}

func (m *moving) SetWith(
	_ context.Context, _ string, _ schedule.Definition, how schedule.Setting,
) (schedule.Version, bool, error) {
	return m.version, true, m.change(how.Seen)
}

func (m *moving) Steer(
	_ context.Context, _ operations.ScheduleVerb, _, _ string, seen schedule.Version,
) error {
	return m.change(seen)
}

func (m *moving) RunWith(
	_ context.Context, _ string, _ schedule.ByHand, seen schedule.Version,
) (operations.Handle, error) {
	return nil, m.change(seen)
}

func (m *moving) Backfill(_ context.Context, _ string, _, _ time.Time, seen schedule.Version) (int, error) {
	return 1, m.change(seen)
}

// A caller is judged by the behavior that the schedule has: one that gets another in between is left as it is.
func TestSchedules_WhatChangesAfterItWasJudgedIsLeftAsItIs(t *testing.T) {
	of := &moving{version: 7}
	s := serveOf(t, apitest.Secrets{"who": {Name: "who", Role: token.Operator}}, operations.Direct{}, of, of)
	for _, q := range [][3]string{
		{"PUT", "", `{"cron":"@daily","behavior":"noop"}`},
		{"POST", "/pause", ""},
		{"POST", "/resume", ""},
		{"DELETE", "", ""},
		{"POST", "/run", ""},
		{"POST", "/backfill", `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`},
	} {
		if a := s.send("who", q[0], "/v1/schedules/a"+q[1], q[2]); a.Code != http.StatusConflict || of.done != 0 {
			t.Errorf("%s %s: status %d, %d changes: %s", q[0], q[1], a.Code, of.done, a.Body)
		}
	}
}
