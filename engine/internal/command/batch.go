package command

import (
	"bytes"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
)

// A lane is a stream of numbered batches from a sender to a shard, of which one is under way at a time.
const (
	LaneSubmit uint8 = iota // what users and operators ask
	LaneWork                // what running attempts report; owners decide it first
	LaneQuery               // reads; batches here never cause events
	LaneOffer               // standing offers, which may wait in the owner
	LaneCount
)

// Limits of batches. An entry takes whole batches, as long as it is below events.SealEntryBytes: with a batch of
// MaxBatchBytes whose last command carries the largest payload it must stay below events.MaxEntryBytes.
const (
	MaxBatchCommands = 2048
	MaxBatchBytes    = 192 << 10 // a batch takes no further command beyond it
	MaxAnswerBytes   = 512 << 10
	// MaxReadBytes bounds the answers to a batch of questions. One answer is smaller: a page takes no further task once
	// it has half of MaxAnswerBytes, and a task takes 520 KiB at most.
	MaxReadBytes = 896 << 10
	// answerBytes is at least what an answer takes besides its text and its data.
	answerBytes = 48
	// originBytes is at least what a batch takes in an entry besides its names and its commands.
	originBytes = 64
	// maxBatchSize bounds the size of a batch, so that it fits into an entry of its own. Senders make much smaller
	// ones.
	maxBatchSize = events.MaxEntryBytes - 1024
)

// Batch carries commands to an owner, which decides them in one entry, in order.
type Batch struct {
	Sender    string
	Lane      uint8
	Number    uint64
	Made      events.Millis // by the sender's clock
	Principal string
	Commands  []Command
	Asked     []Asked // whose commands they are, in order; none = the sender's own
}

func (b *Batch) Encode() []byte {
	w := wire.Scratch()
	defer w.Done()
	fields := 6
	if len(b.Asked) > 0 {
		fields++
	}
	w.Array(fields)
	w.Text(b.Sender)
	w.Uint(uint64(b.Lane))
	w.Uint(b.Number)
	w.Int(int64(b.Made))
	w.Text(b.Principal)
	w.Array(2 * len(b.Commands))
	for _, c := range b.Commands {
		Encode(w, c)
	}
	if len(b.Asked) > 0 {
		b.encodeAsked(w)
	}
	return bytes.Clone(w.B)
}

// Commands of users and operators have to reach their owner in time: a recorded copy that is repeated later, when
// the number of its batch is forgotten, must not be decided again. A number is remembered for
// projection.KeepSenders after its last use, so the two together must be less; and MaxBatchAge exceeds
// sender.GiveUp by the time that the clock of an honest sender may be behind.
const (
	MaxBatchAge   = 45 * time.Minute
	MaxBatchAhead = 10 * time.Minute
)

// size is at least what a batch and its answers take in an entry.
func (b *Batch) size() int {
	n := originBytes + len(b.Sender) + len(b.Principal)
	for i := range b.Asked {
		n += originBytes + b.Asked[i].Caller.Bytes()
	}
	for _, c := range b.Commands {
		n += c.Size()
	}
	return n
}

// Aging is a command that holds its age since it was first asked, to which Waited adds the time until its batch is
// made.
type Aging interface{ Waited(d time.Duration) }

// Untimely refuses a batch that is too old, or from too far ahead, by the owner's clock. Batches of the other lanes
// change nothing twice, even once their numbers are forgotten: work names its attempt, a Reconcile its owner, and
// an offer is closed by its node. A barrier only records a number.
func (b *Batch) Untimely(now events.Millis) (why Answer, refuse bool) {
	age := now - b.Made
	oldest, furthest := events.Millis(MaxBatchAge.Milliseconds()), events.Millis(MaxBatchAhead.Milliseconds())
	if b.Lane != LaneSubmit || age <= oldest && age >= -furthest {
		return Answer{}, false
	}
	return Refused(AnswerClock, "asked at %s by the caller's clock, which is %s by that of the shard's owner",
		b.Made.Time().UTC().Format(time.RFC3339), now.Time().UTC().Format(time.RFC3339)), true
}

// EncodeAnswerMessage writes the message that goes back to the sender of a batch; nil answers acknowledge that it
// has come. recorded reports that they are in the journal.
func EncodeAnswerMessage(shard int, b *Batch, answers []Answer, recorded bool) []byte {
	var body []byte
	if answers != nil {
		body = EncodeAnswers(answers)
	}
	w := wire.Writer{B: make([]byte, 0, len(body)+32)}
	w.Array(5)
	w.Uint(uint64(shard))
	w.Uint(uint64(b.Lane))
	w.Uint(b.Number)
	w.Bytes(body)
	w.Bool(recorded)
	return w.B
}

// DecodeAnswerMessage reads what EncodeAnswerMessage writes.
func DecodeAnswerMessage(data []byte) (
	shard int, laneID uint8, number uint64, answers []Answer, recorded bool, err error,
) {
	r, err := Scanned(data)
	if err != nil {
		return 0, 0, 0, nil, false, err
	}
	tail := r.ArrayFrom(5)
	shard64, lane64 := r.Uint(), r.Uint()
	number = r.Uint()
	body := r.View()
	recorded = r.Bool()
	r.Skip(tail)
	if shard64 >= store.MaxShards || lane64 >= uint64(LaneCount) {
		r.Fail("answer from shard %d, lane %d", shard64, lane64)
	}
	shard, laneID = int(shard64), uint8(lane64)
	if err := r.Close(); err != nil {
		return 0, 0, 0, nil, false, err
	}
	if body != nil {
		answers, err = DecodeAnswers(body)
	}
	return shard, laneID, number, answers, recorded, err
}
