package schedules

import (
	"strings"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/projection/schedules"
	"taskledger/schedule"
)

// row is a schedule that travels.
type row struct {
	Name    string
	Plan    []byte
	Params  []byte
	Version uint64
	SetBy   string
	SetAt   int64
	Next    int64
	Offset  int64
	Decided int64
	Active  int64
	Kept    int64
	GaveUp  int64
	Paused  []pause // one or none
	Fill    []fill  // one or none
	Why     string
}

type pause struct {
	By, Reason, Failed string
	Since              int64
}

type fill struct {
	From, To, Next, Ticks, Left, Since int64
	By                                 string
}

type page struct {
	Rows []row
	More bool
}

// pageBytes bounds an answer: a schedule more than it fits, the next does not.
const pageBytes = 256 << 10

// rowOf returns a schedule as it is. why says why a tick that is due is not decided.
func rowOf(s *schedules.Schedule, why string) row {
	r := row{
		Name:    s.Name,
		Plan:    EncodePlan(&s.Plan),
		Params:  s.Params,
		Version: uint64(s.Set),
		SetBy:   s.SetBy,
		SetAt:   int64(s.SetAt),
		Next:    int64(s.Next),
		Offset:  s.NextOffset,
		Decided: int64(s.Decided),
		Active:  int64(s.Active()),
		Kept:    int64(len(s.Kept())),
		GaveUp:  int64(s.GaveUp),
		Why:     why,
	}
	if p := s.Paused; p != nil {
		r.Paused = []pause{{
			By:     p.By,
			Reason: p.Reason,
			Failed: string(p.Failed),
			Since:  int64(p.Since),
		}}
	}
	if f := s.Fill; f != nil {
		r.Fill = []fill{{
			From:  int64(f.From),
			To:    int64(f.To),
			Next:  int64(f.Next),
			Ticks: int64(f.Ticks),
			Left:  int64(f.Left),
			Since: int64(f.Since),
			By:    f.By,
		}}
	}
	return r
}

// schedule returns what the caller gets.
func (r *row) schedule() (schedule.Schedule, error) {
	var p events.SchedulePlan
	if err := command.DecodeLenient(r.Plan, func(in *wire.Reader) { p.Decode(in) }); err != nil {
		return schedule.Schedule{}, err
	}
	if err := p.Check(); err != nil {
		return schedule.Schedule{}, err
	}
	s := schedule.Schedule{
		Name:       r.Name,
		Definition: schedule.Of(&p, r.Params),
		Version:    schedule.Version(r.Version),
		SetBy:      r.SetBy,
		SetAt:      events.Millis(r.SetAt),
		Next:       events.Millis(r.Next),
		Last:       events.Millis(r.Decided),
		Active:     int(r.Active),
		Kept:       int(r.Kept),
		GaveUp:     events.Millis(r.GaveUp),
		Why:        r.Why,
	}
	for _, p := range r.Paused {
		s.Paused = &schedule.Pause{
			By:     p.By,
			Reason: p.Reason,
			Since:  events.Millis(p.Since),
			Failed: events.TaskID(p.Failed),
		}
	}
	for _, f := range r.Fill {
		s.Fill = &schedule.Fill{
			From:  events.Millis(f.From),
			To:    events.Millis(f.To),
			Next:  events.Millis(f.Next),
			Ticks: int(f.Ticks),
			Left:  int(f.Left),
			By:    f.By,
			Since: events.Millis(f.Since),
		}
	}
	return s, nil
}

// find answers a Get at a time, which the answer tells.
func (c *Get) find(all *schedules.Schedules, now events.Millis, why func(*schedules.Schedule) string) command.Found {
	of := all.Schedule(c.Name)
	if of == nil {
		absent := notThere()
		absent.Number = int64(now)
		return command.Found{Items: 1, Linear: c.Linear, Answer: func() command.Answer { return absent }}
	}
	p := page{Rows: []row{rowOf(of, why(of))}}
	return p.found(1, c.Linear, now)
}

// find answers a List.
func (c *List) find(all *schedules.Schedules, why func(*schedules.Schedule) string) command.Found {
	some := all.After(c.After, int(c.Limit)+1, c.matches)
	p, bytes := page{}, 0
	for i, of := range some {
		if i == int(c.Limit) || bytes > pageBytes {
			p.More = true
			break
		}
		p.Rows = append(p.Rows, rowOf(of, why(of)))
		bytes += len(of.Params) + planBytes
	}
	return p.found(all.Len(), false, 0)
}

// matches reports whether a schedule is one of the list.
func (c *List) matches(of *schedules.Schedule) bool {
	return strings.HasPrefix(of.Name, c.Prefix) && (c.Behavior == "" || of.Plan.Behavior == c.Behavior) &&
		(!c.Paused || of.Paused != nil)
}

// found returns the page as an answer, for which so many schedules were looked at.
func (p page) found(scanned int, linear bool, now events.Millis) command.Found {
	data := message.Encode(p)
	return command.Found{
		Items:  scanned,
		Bytes:  len(data),
		Linear: linear,
		Answer: func() command.Answer { return command.Answer{Number: int64(now), Data: data} },
	}
}

// decodePage reads the answer to a Get or a List.
func decodePage(data []byte) (all []schedule.Schedule, more bool, err error) {
	p, err := command.ReadLenient[page](data)
	if err != nil {
		return nil, false, err
	}
	for i := range p.Rows {
		s, err := p.Rows[i].schedule()
		if err != nil {
			return nil, false, err
		}
		all = append(all, s)
	}
	return all, p.More, nil
}
