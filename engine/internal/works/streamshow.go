package works

import (
	"fmt"
	"time"

	"taskledger/events"
	"taskledger/projection/works"
	"taskledger/work/progress"
)

// StreamShown is the stream of a work as it travels.
type StreamShown struct {
	Is        bool    // false = the work is none
	Forms     []int64 // of the partitions, as events.WorkForm
	Token     []byte
	MovedAt   int64
	Simulated []byte
	Open      uint64
	Oldest    int64
	ToldAt    int64
	RateFrom  int64
	Processed uint64 // changes since RateFrom
	Keys      uint64
	Retried   uint64
	Parked    uint64
	Failed    uint64
	Changes   uint64 // of holds
}

// showStream returns the stream of a work.
func showStream(of *works.Work) (s StreamShown) {
	if !of.Streams() {
		return s
	}
	s.Is = true
	for i := range of.Partitions {
		s.Forms = append(s.Forms, int64(of.Partitions[i].Form))
	}
	for i := range of.Parts {
		if token := of.Parts[i].Simulated; token != "" {
			s.Simulated = []byte(token)
		}
	}
	is := of.Stream
	if is == nil {
		return s
	}
	s.Token, s.MovedAt = []byte(is.Token), int64(is.MovedAt)
	s.Open, s.Oldest, s.ToldAt = is.Open, int64(is.Oldest), int64(is.ToldAt)
	rate := is.Rate()
	s.RateFrom, s.Processed = int64(rate.From), rate.Changes
	for range is.Keys {
		s.Keys++
	}
	for _, h := range is.Holds() {
		s.Changes += uint64(len(h.Changes))
		switch {
		case h.Final:
			s.Failed++
		case h.Parked:
			s.Parked++
		default:
			s.Retried++
		}
	}
	return s
}

// holds says which changes a hold has, and how its task, if that is suspended, comes to an end.
func holds(of *works.Work, h *works.Hold, suspended bool) string {
	const say = "it holds %s of the key %.64q of the stream of task %s"
	text := fmt.Sprintf(say, counted(uint64(len(h.Changes)), "change"), h.Key, of.ID)
	if len(h.Changes) > 0 && h.Changes[0].At != "" {
		text += fmt.Sprintf(", from %.64q on", h.Changes[0].At)
	}
	if suspended {
		text += "; resume has it process them, and delete drops them"
	}
	return text
}

// behind says how far a stream was at a time, as it told last, what it has processed, and which tasks have changes of
// it apart; "" = nothing is to be said. While it rests, as it is suspended or has failed, nobody knows what has come.
func behind(of *works.Work, now events.Millis, rests bool) string {
	s := showStream(of)
	if len(s.Token) == 0 && s.Open == 0 && s.Changes == 0 {
		return ""
	}
	text := "its stream has no token"
	if len(s.Token) > 0 {
		text = fmt.Sprintf("its stream has the token %.64q", s.Token)
	}
	if s.Open > 0 || !rests {
		text += " and is " + counted(s.Open, "change") + " behind"
	}
	if oldest := events.Millis(s.Oldest); s.Open > 0 && oldest != 0 {
		text += fmt.Sprintf(", of which the oldest came %s ago", max(now.Time().Sub(oldest.Time()), 0).Round(time.Second))
	}
	if s.RateFrom != 0 && !rests {
		span := max(now.Time().Sub(events.Millis(s.RateFrom).Time()), 0).Round(time.Second)
		text += fmt.Sprintf("; it has processed %s in the last %s", counted(s.Processed, "change"), span)
	}
	if failed := failures(of); failed > 0 {
		text += fmt.Sprintf("; %s could not be processed in this run", counted(failed, "change"))
	}
	if s.Changes > 0 {
		const say = "; %s are held apart, by task %s and so on, and later ones of %s wait for them: %d retried, %d parked, %d failed"
		first := of.Stream.Holds()[0].ID
		text += fmt.Sprintf(say, counted(s.Changes, "change"), first, counted(s.Keys, "key"), s.Retried, s.Parked, s.Failed)
	}
	return text
}

// failures counts the items of a run that failed.
func failures(of *works.Work) (n uint64) {
	for i := range of.Parts {
		n += of.Parts[i].Items.Failed
	}
	return n
}

// report returns what is told of a stream; nil = the work is none.
func (s *StreamShown) report() *progress.Stream {
	if !s.Is {
		return nil
	}
	return &progress.Stream{
		Token:       string(s.Token),
		MovedAt:     events.Millis(s.MovedAt),
		SimulatedTo: string(s.Simulated),
		Lag: progress.Lag{
			Open:   s.Open,
			Oldest: events.Millis(s.Oldest),
			ToldAt: events.Millis(s.ToldAt),
		},
		Holds: progress.Holds{
			Keys:    s.Keys,
			Retried: s.Retried,
			Parked:  s.Parked,
			Failed:  s.Failed,
			Changes: s.Changes,
		},
	}
}

// formOf returns the word for the form of a partition, by its place; "" = it is no stream.
func (s *StreamShown) formOf(partition int) string {
	if partition >= len(s.Forms) {
		return ""
	}
	return progress.Form(events.WorkForm(s.Forms[partition]))
}
