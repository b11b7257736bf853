package check

import (
	"bytes"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checkEntries decodes the journals. The longest of a shard, over all members, is the one that everything else is judged by.
func (c *checker) checkEntries() {
	if len(c.run.Members) == 0 {
		c.report(entriesOnce, 0, 0, "no member tells its journals")
	}
	for i := range c.run.Members {
		if n := len(c.run.Members[i].Entries); n != len(c.shards) {
			c.report(entriesOnce, 0, 0, "member %s has journals of %d shards, the cluster has %d", c.run.Members[i].Member, n, len(c.shards))
		}
	}
	for shard, j := range c.shards {
		base := c.longest(shard)
		for i := range c.run.Members {
			c.compareMembers(shard, base, &c.run.Members[i])
		}
		c.decode(j, base)
		j.broken = len(j.entries) < len(base)
	}
}

func (c *checker) longest(shard int) (base []history.Record) {
	for i := range c.run.Members {
		if all := c.run.Members[i].Entries; shard < len(all) && len(all[shard]) > len(base) {
			base = all[shard]
		}
	}
	return base
}

// compareMembers reports the first entry that a member holds otherwise.
func (c *checker) compareMembers(shard int, base []history.Record, m *history.Journals) {
	if shard >= len(m.Entries) {
		return
	}
	own := m.Entries[shard]
	for i := range own {
		if own[i].Number != base[i].Number || own[i].Revision != base[i].Revision || !bytes.Equal(own[i].Data, base[i].Data) {
			c.report(entriesOnce, shard, base[i].Number, "member %s holds another entry here than other members: %d at revision %d, %d bytes",
				m.Member, own[i].Number, own[i].Revision, len(own[i].Data))
			return
		}
	}
	if len(own) < len(base) {
		c.report(entriesOnce, shard, base[len(own)].Number, "member %s ends with %d entries, another one has %d", m.Member, len(own), len(base))
	}
}

// decode reads a journal up to the first entry that does not continue it.
func (c *checker) decode(j *journal, records []history.Record) {
	var before entry
	before.Entry = new(events.Entry)
	for i := range records {
		r := &records[i]
		e, err := events.Decode(r.Data)
		number := uint64(i + 1)
		problem := func(format string, args ...any) { c.report(entriesOnce, j.shard, number, format, args...) }
		switch {
		case r.Number != number:
			problem("entry %d is here: one is missing or there twice", r.Number)
		case err != nil:
			problem("%v", err)
		case e.Number != number || int(e.Shard) != j.shard:
			problem("the key of this entry holds entry %d of shard %d", e.Number, e.Shard)
		case r.Created != 0 && r.Created != r.Revision:
			problem("written at revision %d, and again at %d", r.Created, r.Revision)
		case r.Revision <= before.revision:
			problem("of revision %d, after one of %d", r.Revision, before.revision)
		case e.Prev != before.Hash:
			problem("follows an entry with hash %s, the one before has %s", e.Prev, before.Hash)
		case e.Time < before.Time:
			problem("of time %d, after one of %d", e.Time, before.Time)
		default:
			before = entry{e, r.Revision, r.At}
			j.entries = append(j.entries, &entry{e, r.Revision, r.At})
			c.latest = max(c.latest, e.Time)
			continue
		}
		return
	}
}
