package command

// Full reports that a batch has to wait for the next entry: this one takes no more, or what it holds leaves no room for the batch.
func (d *Decider) Full(b *Batch) bool {
	return d.EntryFull() || !d.empty() && d.Entry.Size()+b.size() > d.Misfits.limit()
}

// refusesBatch refuses a batch that is not asked in time, is asked by somebody whom no event can name, or cannot be stored.
func (d *Decider) refusesBatch(b *Batch) (why Answer, refuse bool) {
	if why, refuse = b.Untimely(d.Wall); refuse {
		return why, true
	}
	if err := b.limits(); err != nil {
		return Refused(AnswerInvalid, "%v", err), true
	}
	return Answer{}, false
}

// Grows refuses a command that would add so many bytes to what the shard holds where there is no room for them. What adds none is refused
// only where nothing can be recorded.
func (d *Decider) Grows(bytes int) (refusal Answer, refused bool) {
	switch {
	case d.StoreFull: // what needs an entry would wait for room, and hold up all behind it
		return d.noSpace(), true
	case bytes <= 0:
		return Answer{}, false
	}
	return d.noRoom(false, bytes)
}
