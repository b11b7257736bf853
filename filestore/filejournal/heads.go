package filejournal

import (
	"iter"

	"taskledger/filestore/internal/frame"
	"taskledger/filestore/journal"
)

// Heads implements journal.Surveyed. They are known until the journal begins.
func (j *Journal) Heads(shard int, from uint64) (heads iter.Seq[journal.Head], known bool) {
	j.index.RLock()
	defer j.index.RUnlock()
	l := j.lines[shard]
	places := l.from(from)
	if len(places) == 0 {
		return func(func(journal.Head) bool) {}, true
	}
	if len(l.revisions) != len(l.places) {
		return nil, false
	}
	revisions := l.revisions[len(l.revisions)-len(places):]
	return func(yield func(journal.Head) bool) {
		for i, at := range places {
			h := journal.Head{
				Number:   from + uint64(i),
				Revision: revisions[i],
				Bytes:    int(at.next - at.at - frame.HeaderBytes),
			}
			if !yield(h) {
				return
			}
		}
	}, true
}
