package command

import "cmp"

// Room limits what the commands of one entry may add.
type Room struct {
	Refusal   string // why no submit adds anything; "" = submits do
	StoreFull bool   // the store is known to be full: nothing can be recorded
	LiveLimit int64  // bytes of live tasks; 0 = any
}

// Full reports that a batch has to wait for the next entry: this one takes no more, or has no room left for the batch.
func (d *Decider) Full(b *Batch) bool {
	return d.EntryFull() || !d.empty() && d.Entry.Size()+b.size()+d.endBytes(b) > d.Oversized.limit()
}

// endBytes returns how much fronts let follow the ends of attempts of a batch, as the shard is.
func (d *Decider) endBytes(b *Batch) (sum int) {
	each := d.State.EndBytes()
	if each == 0 {
		return 0
	}
	for _, c := range b.Commands {
		if endsAttempt(c) {
			sum += each
		}
	}
	return sum
}

// sizeOf is at least what a command takes in an entry of the shard.
func (d *Decider) sizeOf(c Command) int {
	if endsAttempt(c) {
		return c.Size() + d.State.EndBytes()
	}
	return c.Size()
}

func endsAttempt(c Command) bool {
	_, ends := c.(*Complete)
	return ends
}

// refusesBatch refuses a batch that is not in time, has a caller that no event can name, or cannot be stored.
func (d *Decider) refusesBatch(b *Batch) (why Answer, refuse bool) {
	if why, refuse = b.Untimely(d.Wall); refuse {
		return why, true
	}
	if err := b.limits(); err != nil {
		return Refused(AnswerInvalid, "%v", err), true
	}
	return Answer{}, false
}

// Grows refuses a command that would add so many bytes to the shard if there is no room for them. A command that
// adds none is refused only if nothing can be recorded.
func (d *Decider) Grows(bytes int) (refusal Answer, refused bool) {
	switch {
	case d.StoreFull: // an entry would wait for room, and delay all behind it
		return d.noSpace(), true
	case bytes <= 0:
		return Answer{}, false
	}
	return d.noRoom(false, bytes)
}

// noRoom refuses a submit that asks for another live task, or adds bytes of parameters to one, if there is no room
// for them. Operators' commands pass: they have to work in a shard that is full.
func (d *Decider) noRoom(task bool, adds int) (refusal Answer, refused bool) {
	with := d.State.LiveBytes() + int64(adds)
	// Tasks that are held for their requests make room in time.
	defer func() { d.Counts = d.Counts || refused && d.Refusal == "" && d.State.Held() > 0 }()
	switch {
	case d.Refusal != "":
		return Overload("%s", d.Refusal), true
	case task && d.State.Live()+d.State.Held() >= maxLiveTasks:
		return Overload("shard holds %d tasks that are not finished or whose requests may be repeated",
			maxLiveTasks), true
	case d.LiveLimit > 0 && with >= d.LiveLimit:
		return Overload("tasks of the shard would take %d bytes, the store has room for %d", with, d.LiveLimit), true
	}
	return Answer{}, false
}

// noSpace refuses what cannot be recorded.
func (d *Decider) noSpace() Answer { return Overload("%s", cmp.Or(d.Refusal, StoreFull)) }

// maxLiveTasks bounds the unfinished tasks of a shard, and so its memory.
const maxLiveTasks = 1_000_000
