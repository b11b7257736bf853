package check

import "taskledger/events"

// journal is the decoded journal of one shard.
type journal struct {
	shard     int
	entries   []*entry
	broken    bool // it goes on, but is corrupt
	records   map[events.Record]*recordChain
	items     ItemJournal
	schedules ScheduleFold
	works     WorkFold
}

// last is the number of the last entry, 0 without one.
func (j *journal) last() uint64 {
	if len(j.entries) == 0 {
		return 0
	}
	return j.entries[len(j.entries)-1].Number
}

type entry struct {
	*events.Entry
	revision int64
	at       int64 // when it was committed, by the clock of the run; 0 = not known
}
