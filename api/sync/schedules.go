package sync

import (
	"time"

	"taskledger/api"
	"taskledger/events"
	"taskledger/schedule"
)

// ScheduleList is the list of collections.
type ScheduleList struct {
	Schedules []Schedule `json:"schedules"`
}

// Schedule says when a collection has its runs.
type Schedule struct {
	Source     string `json:"source"`
	Collection string `json:"collection"`
	Schedule   string `json:"schedule"` // a cron expression; "" = it runs when it is asked to
	Timezone   string `json:"timezone"`
	Paused     bool   `json:"paused"` // ticks have no runs until it is resumed
	// Next has the next five ticks, the earliest first; fewer where no more come, and none where this node has no data of
	// the time zone.
	Next []events.Millis `json:"next"`
}

// ticksShown bounds the ticks of a collection.
const ticksShown = 5

func scheduleOf(p pair, s *schedule.Schedule) Schedule {
	told := Schedule{
		Source:     p.source,
		Collection: p.collection,
		Schedule:   s.Definition.Cron,
		Timezone:   s.Definition.Timezone,
		Paused:     s.Paused != nil,
		Next:       []events.Millis{},
	}
	if told.Schedule == "" {
		return told
	}
	ticks, err := schedule.TicksOf(&events.SchedulePlan{
		Cron:  s.Definition.Cron,
		Zone:  s.Definition.Timezone,
		Start: events.MillisOf(s.Definition.Start),
		End:   events.MillisOf(s.Definition.End),
	})
	if err == nil {
		next, _ := ticks.Between(events.MillisOf(time.Now())+1, events.MaxTick, ticksShown)
		told.Next = append(told.Next, next...)
	}
	return told
}

// listSchedules answers with the collections that the token is for.
func (f *front) listSchedules(c *api.Call) error {
	after := ""
	return c.Array(`{"schedules":[`, `]}`, func() (page []any, more bool, err error) {
		ctx, cancel := c.Ask()
		defer cancel()
		after, err = f.pageOf(ctx, c.Token(), "", after, func(p pair, s *schedule.Schedule) {
			page = append(page, scheduleOf(p, s))
		})
		return page, after != "", err
	})
}
