package schedules

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"taskledger/api"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/schedule"
)

// Page is a page of the list of schedules.
type Page struct {
	Schedules []schedule.Schedule `json:"schedules"`
	// Next asks for the next page, as the parameter after; "" = there is none.
	Next string `json:"next,omitempty"`
}

// Ticks holds ticks to come.
type Ticks struct {
	Next []events.Millis `json:"next"` // the earliest first
}

// maxPage bounds the schedules of a page.
const maxPage = 100

// list asks for page after page until one is full of schedules that the token is for: no answer names another one.
func (f *front) list(c *api.Call) error {
	limit, err := c.Number("limit", maxPage, 1, maxPage)
	if err != nil {
		return err
	}
	filter := schedule.Filter{Prefix: c.Param("prefix"), Behavior: c.Param("behavior")}
	if filter.Paused, err = c.Flag("paused"); err != nil {
		return err
	}
	after, page := c.Param("after"), Page{Schedules: []schedule.Schedule{}}
	for more := narrow(&filter, c.Token().Prefix); more; {
		var some []schedule.Schedule
		if some, more, err = f.schedules.List(c.Context(), filter, after, limit); err != nil {
			return err
		}
		for i, s := range some {
			after = s.Name
			if !isFor(c.Token(), &s) {
				continue
			}
			page.Schedules = append(page.Schedules, shown(s))
			if len(page.Schedules) == limit {
				if more || i < len(some)-1 {
					page.Next = after
				}
				return c.JSON(http.StatusOK, page)
			}
		}
	}
	return c.JSON(http.StatusOK, page)
}

// narrow bounds a filter to names whose records may have the prefix of a token; false = it selects none.
func narrow(filter *schedule.Filter, prefix string) bool {
	prefix, _, _ = strings.Cut(prefix, "/")
	if strings.HasPrefix(prefix, filter.Prefix) {
		filter.Prefix = prefix
		return true
	}
	return strings.HasPrefix(filter.Prefix, prefix)
}

// isFor reports whether a token is for a schedule.
func isFor(by *token.Token, s *schedule.Schedule) bool {
	return by.MayTask(events.ScheduleRecord(s.Name)) && by.MayBehavior(s.Definition.Behavior)
}

// get returns the schedule that the path names, if the token is for its behavior.
func (f *front) get(c *api.Call) (schedule.Schedule, error) {
	s, err := f.schedules.Get(c.Context(), c.Path("name"))
	if err == nil && !isFor(c.Token(), &s) {
		err = fmt.Errorf("schedule %s: %w", s.Name, schedule.ErrNotFound)
	}
	return s, err
}

func (f *front) show(c *api.Call) error {
	s, err := f.get(c)
	if err != nil {
		return err
	}
	tag(c, s.Version)
	return c.JSON(http.StatusOK, shown(s))
}

// shown returns a schedule as JSON tells it.
func shown(s schedule.Schedule) schedule.Schedule {
	s.UUIDs = s.Definition.UUIDs
	return s
}

// tag tells a version in the header ETag.
func tag(c *api.Call, v schedule.Version) {
	c.Header().Set("ETag", strconv.Quote(strconv.FormatUint(uint64(v), 10)))
}

func (f *front) next(c *api.Call) error {
	n, err := c.Number("n", 10, 1, 100)
	if err != nil {
		return err
	}
	s, err := f.get(c)
	if err != nil {
		return err
	}
	ticks, err := schedule.TicksOf(&events.SchedulePlan{
		Cron:  s.Definition.Cron,
		Zone:  s.Definition.Timezone,
		Start: events.MillisOf(s.Definition.Start),
		End:   events.MillisOf(s.Definition.End),
	})
	if err != nil {
		return err
	}
	all, _ := ticks.Between(events.MillisOf(time.Now())+1, events.MaxTick, n)
	return c.JSON(http.StatusOK, Ticks{append([]events.Millis{}, all...)})
}
