package traffic

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

const (
	// remembered bounds the latest tasks about which a source goes on asking.
	remembered = 24
	// rememberedKeys bounds the latest requests with a key that a source repeats.
	rememberedKeys = 4
	// sharedTasks counts the deterministic ids in use at a time, sharedFor the requests of a source for which they are.
	sharedTasks = 6
	sharedFor   = 40
	// sharedKeys counts the request keys in use at a time that all sources know.
	sharedKeys = 2
	// spares counts the behaviors without tasks, which can be paused and hold nothing up.
	spares = 3
)

// callers are whom requests may be for; who makes them for himself is none of these.
var callers = []string{"ada", "bob", "eve"}

// Source draws requests. Sources of one run share deterministic ids. It must not be used concurrently.
type Source struct {
	Pad int  // bytes that each submit carries, so that journals grow
	Few bool // few tasks take long: slots are few

	name      string // part of its tasks' ids
	random    *rand.Rand
	made      int
	tasks     []string // the latest that it submitted
	suspended []string
	repeats   string    // the task that its policy repeats and that nobody has cancelled; "" = none
	keyed     []Request // the latest with a key
	scheduled bool      // it has set a schedule
	brooks    []string  // the streams that it submitted
}

// NewSource returns the source of a name; name and seed determine what it draws.
func NewSource(name string, seed uint64) *Source {
	s := &Source{name: name, random: rand.New(rand.NewPCG(seed, uint64(len(name))))}
	for _, c := range name {
		s.random = rand.New(rand.NewPCG(s.random.Uint64(), uint64(c)))
	}
	return s
}

// mix says how often each kind of request is drawn, of 100.
var mix = []struct {
	share int
	draw  func(*Source) Request
}{
	{16, (*Source).unique},
	{3, (*Source).errand},
	{3, (*Source).brook},
	{6, (*Source).schedule},
	{3, (*Source).repeated},
	{14, (*Source).shared},
	{3, (*Source).together},
	{4, (*Source).settings},
	{1, (*Source).forbidden},
	{10, func(s *Source) Request { return s.about(history.Get) }},
	{11, func(s *Source) Request { return s.about(history.Wait) }},
	{7, func(s *Source) Request { return s.about(history.Cancel) }},
	{5, func(s *Source) Request { return s.about(history.Retry) }},
	{5, func(s *Source) Request { return s.about(history.RunNow) }},
	{3, func(s *Source) Request { return s.about(history.Delete) }},
	{3, (*Source).suspend},
	{3, (*Source).resume},
}

// Next draws a request.
func (s *Source) Next() Request {
	s.made++
	p := s.random.IntN(100)
	for _, m := range mix {
		if p -= m.share; p < 0 {
			return m.draw(s)
		}
	}
	panic("shares do not add up to 100")
}

// Think draws how long the client waits before its next request: mean on average, four times that at most.
func (s *Source) Think(mean time.Duration) time.Duration {
	return min(time.Duration(s.random.ExpFloat64()*float64(mean)), 4*mean)
}

// unique leaves the id to the engine now and then, under a key that may have been used before: for the same request,
// mostly.
func (s *Source) unique() Request {
	r := s.Submit()
	if s.random.IntN(3) != 0 {
		s.remember(r.Task)
		return r
	}
	if len(s.keyed) > 0 && s.random.IntN(3) == 0 {
		r = s.keyed[s.random.IntN(len(s.keyed))]
		if s.random.IntN(8) == 0 {
			r.Params.Millis++
		}
		return r
	}
	r.Task, r.Key = "", r.Task
	if r.By != "" { // it gets further runs, and whoever repeats the request wants that which it was promised
		s.remember(string(events.TaskOfRequest(r.By, r.behavior(), r.Key)))
	}
	s.keyed = append(s.keyed[max(0, len(s.keyed)-rememberedKeys+1):], r)
	return r
}

// repeated submits a task that its policy repeats, or cancels the one before.
func (s *Source) repeated() Request {
	if task := s.repeats; task != "" {
		s.repeats = ""
		return s.asks(Request{Verb: history.Cancel, Task: task})
	}
	r := s.Submit()
	r.Repeat, s.repeats = true, r.Task
	s.remember(r.Task)
	return r
}

// asks lets one of the callers ask, or nobody but the client, and gives the request a trace now and then.
func (s *Source) asks(r Request) Request {
	if s.random.IntN(2) == 0 {
		r.By = callers[s.random.IntN(len(callers))]
	}
	r.Traced = s.random.IntN(2) == 0
	return r
}

// together makes a request that other sources make, too, in other processes and after restarts: under one key, for one
// of two callers, whose tasks differ. Now and then it is another request of that key.
func (s *Source) together() Request {
	k := s.made/sharedFor*sharedKeys + s.random.IntN(sharedKeys)
	r := Request{Verb: history.Submit, Key: fmt.Sprint("together-", k), By: callers[s.random.IntN(2)], Again: k%2 == 0, Params: Params{Millis: 1 + k%60}, Priority: int64(k % 3)}
	r.Traced = s.random.IntN(2) == 0
	if s.random.IntN(8) == 0 {
		r.Priority++
	}
	return r
}

// settings asks about the settings, or changes them.
func (s *Source) settings() Request {
	r := s.asks(Request{Verb: history.Settings})
	switch s.random.IntN(5) {
	case 0, 1:
		r.Verb, r.Behavior, r.Reason = history.Pause, fmt.Sprint("spare-", s.random.IntN(spares)), fmt.Sprint("for ", s.name, ", ", s.made)
	case 2:
		r.Verb, r.Behavior = history.Unpause, fmt.Sprint("spare-", s.random.IntN(spares))
	}
	return r
}

// forbidden asks for what breaks a limit.
func (s *Source) forbidden() Request {
	r := s.Submit()
	switch s.random.IntN(4) {
	case 0:
		r.Forbidden, r.Task = "reserved affinity", "store:"+r.Task+"/1"
	case 1:
		r.Forbidden, r.Priority = "priority", events.MaxPriority+1
	case 2:
		r.Forbidden, r.Params.Pad = "parameters", strings.Repeat("x", events.MaxPayloadBytes)
	default:
		r = Request{Verb: history.Pause, Behavior: "spare-0", Forbidden: "reason", Reason: strings.Repeat("x", events.MaxNameBytes+1)}
	}
	return r
}

// shared submits what other sources submit too. Who joins brings a priority of his own, now and then.
func (s *Source) shared() Request {
	k := s.made/sharedFor*sharedTasks + s.random.IntN(sharedTasks)
	r := Request{Verb: history.Submit, Task: fmt.Sprint("shared-", k), Again: k%2 == 0, Params: s.params()}
	r.Named = s.random.IntN(2) == 0
	if k%3 == 0 {
		r.Priority = int64(s.random.IntN(3))
	}
	s.remember(r.Task)
	return s.asks(r)
}

func (s *Source) remember(id string) {
	s.tasks = append(s.tasks, id)
	if len(s.tasks) > remembered {
		s.tasks = s.tasks[1:]
	}
}

// long is the share of tasks, in percent, that take longer than a session lives, fewLong the share where slots are few.
const (
	long    = 14
	fewLong = 2
)

func (s *Source) params() Params {
	p := Params{Millis: 1 + s.random.IntN(60), Pad: strings.Repeat("x", s.Pad)}
	k := s.random.IntN(100)
	if s.Few && k >= fewLong && k < long {
		k = 99
	}
	switch {
	case k < long: // longer than any session's time to live
		p.Millis = 3500 + s.random.IntN(2500)
	case k < 34:
		p.Fails = 1 + s.random.IntN(maxAttempts+1)
	case k < 44:
		p.Repeats = 1 + s.random.IntN(3)
	}
	return p
}

// about asks about a task that the source has submitted, most often a recent one.
func (s *Source) about(v history.Verb) Request {
	if len(s.tasks) == 0 {
		return s.shared()
	}
	back := min(s.random.IntN(len(s.tasks)), s.random.IntN(len(s.tasks)))
	return s.asks(Request{Verb: v, Task: s.tasks[len(s.tasks)-1-back]})
}

func (s *Source) suspend() Request {
	r := s.about(history.Suspend)
	if r.Verb == history.Suspend {
		s.suspended = append(s.suspended, r.Task)
	}
	return r
}

func (s *Source) resume() Request {
	if len(s.suspended) == 0 {
		return s.about(history.Get)
	}
	r := s.asks(Request{Verb: history.Resume, Task: s.suspended[0]})
	s.suspended = s.suspended[1:]
	return r
}

// Submit draws a submit of a task of the source's own, with an id.
func (s *Source) Submit() Request {
	s.made++
	r := Request{Verb: history.Submit, Task: fmt.Sprintf("%s-%d", s.name, s.made), Params: s.params()}
	if s.random.IntN(4) == 0 {
		r.Delay = 100*time.Millisecond + time.Duration(s.random.IntN(2000))*time.Millisecond
	}
	return s.asks(r)
}

// errand submits a work.
func (s *Source) errand() Request {
	r := s.Submit()
	r.Errand = true
	r.Params.Repeats, r.Params.Millis = 0, min(r.Params.Millis, 200)
	s.remember(r.Task)
	return r
}

// brook submits a stream, a new one or one that goes on.
func (s *Source) brook() Request {
	r := s.Submit()
	r.Brook = true
	r.Params.Repeats, r.Params.Millis = 0, min(r.Params.Millis, 100)
	if len(s.brooks) > 0 && s.random.IntN(2) == 0 {
		r.Task = s.brooks[s.random.IntN(len(s.brooks))]
		return r
	}
	s.brooks = append(s.brooks[max(0, len(s.brooks)-remembered+1):], r.Task)
	s.remember(r.Task)
	return r
}
