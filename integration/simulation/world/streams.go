package world

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/task"
	works "taskledger/work"
	"taskledger/work/feed"
)

// The streams. Their changes come from changeLogs.
const (
	follow   = "follow"   // each change has a token
	rehearse = "rehearse" // likewise, and what there is is simulated first
	vague    = "vague"    // groups of changes share a token
	updates  = "updates"  // messages are pushed
)

// vagueGroup is the number of changes of a vague stream that share a token.
const vagueGroup = 3

// fates says what the function makes of a change, by its place, where the job is odd. An error has its fate as code.
var fates = [...]string{3: "later", 5: "park", 7: "pass", 9: "goon", 10: "skip", 11: "later", 13: "poison", 15: "stops", 16: ""}

// fate returns what becomes of the change at a place.
func (j *job) fate(place uint64) string {
	if j.Odd == 0 {
		return ""
	}
	of := fates[place%uint64(len(fates))]
	if j.Odd == 1 && (of == "park" || of == "pass" || of == "poison") {
		return ""
	}
	return of
}

// value tells what the function makes of a change.
type value struct {
	Place uint64 `json:"place"`
	Work  int    `json:"work,omitempty"`
	Fate  string `json:"fate,omitempty"`
	Fails int    `json:"fails,omitempty"`
	Stops int    `json:"stops,omitempty"`
}

// streams makes the streams of a process.
type streams struct {
	feeds  *changeLogs
	record *recorder
	killed context.Context // of the process
}

// behaviors returns the streams.
func (s *streams) behaviors(policy *works.Options) []task.Behavior {
	rules := []works.Rule{
		{Code: "later", React: works.RetryLater},
		{Code: "park", React: works.Park},
		{Code: "pass", React: works.Park, Pass: true},
		{Code: "goon", React: works.GoOn},
	}
	followStream := works.Stream[job, value]{
		ID:      "do",
		Threads: 3,
		Rules:   rules,
		Changes: s.changes(1),
		Process: s.process,
	}
	thinkStream := followStream
	thinkStream.ID, thinkStream.Mode = "think", works.Simulate
	vagueStream := followStream
	vagueStream.Imprecise, vagueStream.Changes = true, s.changes(vagueGroup)
	updatesStream := followStream
	updatesStream.Changes, updatesStream.Source, updatesStream.Convert, updatesStream.Idle = nil, s.source, s.convert, time.Second
	var all []task.Behavior
	for _, w := range []*works.Work[job, works.Change[value]]{
		works.DefineStream(follow, policy, followStream),
		works.DefineStream(rehearse, policy, thinkStream, followStream),
		works.DefineStream(vague, policy, vagueStream),
		works.DefineStream(updates, policy, updatesStream),
	} {
		all = append(all, &errand[works.Change[value]]{w, s.record, s.killed})
	}
	return all
}

// changes fetches what a feed has behind a token, so many changes with a token each. In the first attempts of a task
// the source fails, as its job says.
func (s *streams) changes(group uint64) func(context.Context, job, string) iter.Seq2[works.Change[value], error] {
	return func(ctx context.Context, j job, token string) iter.Seq2[works.Change[value], error] {
		of := ctx.Value(parentKey{}).(parent)
		from, _ := strconv.ParseUint(token, 10, 64)
		feed := s.feeds.Make(string(of.id), false)
		return func(yield func(works.Change[value], error) bool) {
			for place := from + 1; ; place++ {
				keys, there := feed.keys(place)
				switch {
				case !there:
					return
				case place == from+3 && of.attempt.Number <= j.Breaks:
					yield(works.Change[value]{}, errors.New("as planned"))
					return
				}
				c := j.change(place, keys[0])
				c.Token = strconv.FormatUint((place+group-1)/group*group, 10)
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// change returns a change of a feed.
func (j *job) change(place uint64, key string) works.Change[value] {
	return works.Change[value]{
		Key: key,
		Value: value{
			Place: place,
			Work:  j.Work,
			Fate:  j.fate(place),
			Fails: j.Fails,
			Stops: j.Breaks,
		},
	}
}

// process does with a change what its fate is. It takes a moment at least: whoever judges it knows what was before.
func (s *streams) process(ctx context.Context, c works.Change[value]) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Millisecond + time.Duration(c.Value.Work)*time.Millisecond):
	}
	if info, _ := works.Run(ctx); info.Mode != works.Full {
		return nil
	}
	of := ctx.Value(parentKey{}).(parent)
	held := events.HoldNumber(of.id, of.attempt.Task) != 0
	err := error(nil)
	switch c.Value.Fate {
	case "later", "park", "pass":
		if !held || of.attempt.Failures < c.Value.Fails {
			return behaviors.Code(c.Value.Fate, errors.New("as planned"), nil)
		}
	case "stops":
		if of.attempt.Number <= c.Value.Stops {
			return behaviors.Code("stops", errors.New("as planned"), nil)
		}
	case "goon":
		err = behaviors.Code("goon", errors.New("as planned"), nil)
	case "skip":
		err = works.Skip("as planned")
	}
	s.visited(of, c.Value.Place, c.Key)
	return err
}

// visited takes down that a change is done, or a message acknowledged, unless the process has died.
func (s *streams) visited(of parent, place uint64, key string) {
	if s.killed.Err() == nil {
		s.record.Visit(history.Visit{
			Task:  string(of.id),
			By:    string(of.attempt.Task),
			Token: of.attempt.Token,
			Place: place,
			Key:   key,
		})
	}
}

// convert returns the changes of a message. Some cannot be read before they were parked.
func (s *streams) convert(ctx context.Context, j job, m feed.Message) (all []works.Change[value], err error) {
	of := ctx.Value(parentKey{}).(parent)
	keys, _ := s.feeds.Make(string(of.id), true).keys(m.Place)
	for _, key := range keys {
		all = append(all, j.change(m.Place, key))
	}
	if j.fate(m.Place) == "poison" && events.HoldNumber(of.id, of.attempt.Task) == 0 && len(keys) == 1 {
		return all, errors.New("as planned")
	}
	return all, nil
}

// source opens the source of a stream.
func (s *streams) source(ctx context.Context, _ job) (feed.Source, error) {
	of := ctx.Value(parentKey{}).(parent)
	from := s.feeds.Make(string(of.id), true).messages.Open()
	return &source{
		Source: from,
		of:     of,
		all:    s,
		lives:  context.AfterFunc(s.killed, from.Leave),
	}, nil
}

// source is a source of one attempt. It implements feed.Source.
type source struct {
	feed.Source
	of    parent
	all   *streams
	lives func() bool // tells the process that it need not leave the source any more
}

// Close implements feed.Source.
func (s *source) Close() error {
	s.lives()
	return s.Source.Close()
}

// Ack implements feed.Source. It takes a moment, as Process does.
func (s *source) Ack(ctx context.Context, m feed.Message) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Millisecond):
	}
	if err := s.Source.Ack(ctx, m); err != nil {
		return err
	}
	s.all.visited(s.of, m.Place, "")
	return nil
}
