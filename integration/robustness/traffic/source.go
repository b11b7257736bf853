package traffic

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"taskledger/integration/robustness/history"
)

const (
	// remembered is how many of its latest tasks a source goes on asking about.
	remembered = 24
	// rememberedKeys is how many of its latest requests with a key a source repeats.
	rememberedKeys = 4
	// sharedTasks is how many deterministic ids are in use at a time, sharedFor how many of a source's requests long.
	sharedTasks = 6
	sharedFor   = 40
)

// Source draws requests. Sources of one run share deterministic ids. It must not be used concurrently.
type Source struct {
	Pad int  // bytes that each submit carries, so that journals grow
	Few bool // few tasks take long: slots are few

	name      string // part of its tasks' ids
	random    *rand.Rand
	made      int
	tasks     []string // the latest that it submitted
	suspended []string
	keyed     []Request // the latest with a key
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
	{34, (*Source).unique},
	{14, (*Source).shared},
	{14, func(s *Source) Request { return s.about(history.Get) }},
	{12, func(s *Source) Request { return s.about(history.Wait) }},
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

// unique leaves the id to the engine now and then, under a key that may have been used before: for the same request, mostly.
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
	s.keyed = append(s.keyed[max(0, len(s.keyed)-rememberedKeys+1):], r)
	return r
}

// shared submits what other sources submit too.
func (s *Source) shared() Request {
	k := s.made/sharedFor*sharedTasks + s.random.IntN(sharedTasks)
	r := Request{Verb: history.Submit, Task: fmt.Sprint("shared-", k), Again: k%2 == 0, Params: s.params()}
	r.Named = r.Again && s.random.IntN(2) == 0
	s.remember(r.Task)
	return r
}

func (s *Source) remember(id string) {
	s.tasks = append(s.tasks, id)
	if len(s.tasks) > remembered {
		s.tasks = s.tasks[1:]
	}
}

// long is how many of a hundred tasks take longer than a session lives, fewLong how many where slots are few.
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
	return Request{Verb: v, Task: s.tasks[len(s.tasks)-1-back]}
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
	r := Request{Verb: history.Resume, Task: s.suspended[0]}
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
	return r
}
