package works

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"taskledger/events"
)

// rateSpan is the least time over which the changes of a stream are counted together, in milliseconds.
const rateSpan events.Millis = 30_000

// moveSpan is the time from one move of a stream to the next, while changes come.
const moveSpan events.Millis = 1000

// Stream tells how far a work has come that is a stream, over all of its runs, and what it holds apart: read only.
type Stream struct {
	Token   string        // all changes up to it are processed or held; "" = none was recorded
	MovedAt events.Millis // when the token last moved; 0 = it never has
	Open    uint64        // changes that are known and not processed, as last told
	Oldest  events.Millis // when the oldest of them came; 0 = there is none, or it is not known
	ToldAt  events.Millis // when Open and Oldest were told
	Recent  Count         // changes that were processed lately
	before  Count         // changes that were processed before those, as far as a rate takes them in
	stage   uint64        // of permits
	staged  uint64        // changes of the run that were passed when the stage began

	holds  map[uint32]*Hold  // by number
	byKey  map[string]uint32 // of holds that no change passes
	passed map[string]uint32 // of the others, by key and name of the change
	last   uint32            // the highest number of a hold so far
	bytes  int64             // of holds
}

// day is the time for which the errors of a stream count together: its run may have no end.
const day = events.Millis(24 * time.Hour / time.Millisecond)

// ErrorsTold returns what the errors take that count for MaxErrorBytes at a time.
func (w *Work) ErrorsTold(now events.Millis) int64 {
	if w.Stream != nil && w.Stream.ToldAt/day != now/day {
		return 0
	}
	return w.ErrorBytes
}

// Count counts changes from a time on.
type Count struct {
	From    events.Millis
	Changes uint64
}

// Hold has changes of a key that are processed apart from their stream, by a task of their own.
type Hold struct {
	Number    uint32
	ID        events.TaskID // of the task
	Life      events.Ref    // of the task
	Partition uint32        // number of the partition that had the first change
	Key       string
	Passed    bool // later changes of the key pass it
	Parked    bool // its task is suspended
	Final     bool // its task has ended, and not processed all
	Begun     events.Millis
	Tries            // since a change of it was processed
	Done      uint64 // changes that were processed
	Changes   []Held // those that are left, in their order

	data int64 // bytes of the data of Changes
}

// Held is a change of a hold.
type Held struct {
	At      string // names the change; "" = nothing does
	Data    []byte
	Code    string
	Message string
	Attempt events.Ref // the Started of the attempt that has added it
}

// spent tells of the task of a hold that is gone.
type spent struct {
	life   events.Ref
	orphan bool // the work is gone, too
}

// holdOf is which hold of a work a task is.
type holdOf struct {
	work   *Work
	number uint32
}

func newStream() *Stream {
	return &Stream{
		holds:  map[uint32]*Hold{},
		byKey:  map[string]uint32{},
		passed: map[string]uint32{},
	}
}

// Hold returns a hold by its number, nil if there is none.
func (s *Stream) Hold(number uint32) *Hold { return s.holds[number] }

// Blocks returns the hold that later changes of a key wait for, nil if there is none.
func (s *Stream) Blocks(key string) *Hold { return s.holds[s.byKey[key]] }

// PassedBy returns the hold that a change, by its name, began and that later ones of its key pass; nil = there is none.
func (s *Stream) PassedBy(key, at string) *Hold { return s.holds[s.passed[passedName(key, at)]] }

func passedName(key, at string) string {
	if at == "" {
		return ""
	}
	return strconv.Itoa(len(at)) + ":" + at + key
}

// Holds returns the holds by number.
func (s *Stream) Holds() []*Hold {
	all := make([]*Hold, 0, len(s.holds))
	for _, h := range s.holds {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *Hold) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Keys yields each key that a hold blocks, in no order.
func (s *Stream) Keys(yield func(key string) bool) {
	for key := range s.byKey {
		if !yield(key) {
			return
		}
	}
}

// Len returns the number of holds.
func (s *Stream) Len() int { return len(s.holds) }

// Last is the highest number that a hold has had.
func (s *Stream) Last() uint32 { return s.last }

// Rate counts the changes that were processed in the last minute or so, and tells since when.
func (s *Stream) Rate() Count {
	if s.before.From == 0 {
		return s.Recent
	}
	return Count{From: s.before.From, Changes: s.before.Changes + s.Recent.Changes}
}

// count counts changes that were processed by a time, from a time on. They count anew after a pause, in which none was
// open: those that end it came at most a move before.
func (s *Stream) count(changes uint64, from, now events.Millis) {
	if s.Recent.From == 0 {
		s.Recent.From = from
	}
	if s.ToldAt != 0 && s.Open == 0 && now-s.ToldAt > rateSpan {
		s.before, s.Recent = Count{}, Count{From: max(from, now-moveSpan)}
	}
	s.Recent.Changes += changes
	if now-s.Recent.From >= rateSpan {
		s.before, s.Recent = s.Recent, Count{From: now}
	}
}

// Data returns the bytes of the data of the changes that are left.
func (h *Hold) Data() int64 { return h.data }

// Has reports whether a change that an attempt would add is there already, and nothing before it comes behind it. An
// attempt adds changes in their order. What another attempt has added behind them may be an earlier change that came
// again and had been processed: then those of before follow that once more. adds tells that the attempt is about to add
// such a change.
func (h *Hold) Has(at string, attempt events.Ref, adds bool) bool {
	if at == "" {
		return false
	}
	for i := len(h.Changes) - 1; i >= 0; i-- {
		is := &h.Changes[i]
		if is.At == at {
			return is.Attempt == attempt || !adds && is.Attempt == h.Changes[len(h.Changes)-1].Attempt
		}
	}
	return false
}

// IsStream reports whether the partition under way is a stream, and its bucket is open for an attempt.
func (w *Work) IsStream(attempt events.Ref) bool {
	_, plan := w.Part()
	return plan != nil && plan.Form != events.FormBuckets && len(w.open) == 1 && w.open[0].Attempt == attempt
}

// Streams reports whether a partition is a stream, or the work has a token or holds of one.
func (w *Work) Streams() bool {
	isStream := func(p events.WorkPartition) bool { return p.Form != events.FormBuckets }
	return w.Stream != nil || slices.ContainsFunc(w.Partitions, isStream)
}

// Pushed reports whether messages are pushed to the work, so that it has no token.
func (w *Work) Pushed() bool {
	isPushed := func(p events.WorkPartition) bool { return p.Form == events.FormPushed }
	return slices.ContainsFunc(w.Partitions, isPushed)
}

// Position returns the token from which the partition under way goes on, and the one at which the simulation before it
// has ended; "" = there is none.
func (w *Work) Position() (token, until string) {
	part, _ := w.Part()
	if part == nil {
		return "", ""
	}
	if w.Stream != nil {
		token = w.Stream.Token
	}
	for i := w.Current - 2; i >= 0 && simulates(&w.Partitions[i]) && until == ""; i-- {
		until = w.Parts[i].Simulated
	}
	return cmp.Or(part.Simulated, token), until
}

// simulates reports whether a partition leaves the token where it is.
func simulates(p *events.WorkPartition) bool { return p.Mode != events.ModeFull && !p.MovesToken }

// lasts reports whether the work has something that outlives its runs.
func (w *Work) lasts() bool {
	return w.Stream != nil && (w.Stream.Token != "" || len(w.Stream.holds) > 0)
}

// HoldOf returns the work that a task processes a hold of, and the hold; nil = it does for none.
func (s *Works) HoldOf(id events.TaskID) (*Work, *Hold) {
	is, there := s.byHold[id]
	if !there {
		return nil, nil
	}
	return is.work, is.work.Stream.holds[is.number]
}

// IsHold reports whether a task was made for a hold, which may be gone.
func (s *Works) IsHold(id events.TaskID) bool {
	_, has := s.byHold[id]
	_, had := s.spent[id]
	return has || had
}

// Spent yields the tasks whose hold is gone, and whether their work is, in no order.
func (s *Works) Spent(yield func(id events.TaskID, orphan bool) bool) {
	for id, is := range s.spent {
		if !yield(id, is.orphan) {
			return
		}
	}
}

// SpentLen returns the number of tasks whose hold is gone.
func (s *Works) SpentLen() int { return len(s.spent) }

// What streams take in a snapshot besides their texts.
const (
	streamBytes = 80
	holdBytes   = 200
	heldBytes   = 30
	spentBytes  = 60
)

// size is about what a stream takes in a snapshot.
func (s *Stream) size() int64 {
	if s == nil {
		return 0
	}
	return streamBytes + int64(len(s.Token)) + s.bytes
}

// HoldBytes is about what a hold takes in a snapshot without its changes.
func HoldBytes(key string) int64 { return int64(holdBytes + len(key)) }

// HeldBytes is about what a change of a hold takes in a snapshot.
func HeldBytes(at string, data int, code, message string) int64 {
	return int64(heldBytes + len(at) + data + len(code) + len(message))
}

func (h *Held) size() int64 { return HeldBytes(h.At, len(h.Data), h.Code, h.Message) }

// size is about what a hold takes in a snapshot.
func (h *Hold) size() int64 {
	n := HoldBytes(h.Key)
	for i := range h.Changes {
		n += h.Changes[i].size()
	}
	return n
}
