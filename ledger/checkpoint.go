package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Checkpoint is the chain hashes of the last entries of the shards, and the digests of the states that they lead to.
// An auditor keeps it, signed by the operator, in order to prove later that nothing before it was changed. What comes
// after it can be replaced unnoticed until the next one is kept. Its text, which is the body of a signed note, is
//
//	taskledger checkpoint
//	<cluster id>
//	<time, RFC 3339 in UTC>
//	<shard> <entry> <hash, 64 hex digits> <form of the state> <digest of the state, 64 hex digits>
//	...
//
// with one line for each head, ending in a newline. Where the state is not known, form and digest are left out.
type Checkpoint struct {
	Cluster string           `json:"cluster"` // its id
	Time    time.Time        `json:"time"`    // by the clock of whoever made it, to the second
	Heads   []CheckpointHead `json:"heads"`
}

// CheckpointHead is the chain hash of an entry, and the state after it.
type CheckpointHead struct {
	Shard int         `json:"shard"`
	Entry uint64      `json:"entry"` // from 1
	Hash  events.Hash `json:"hash"`
	// State is the digest of the state after the entry, as projection.Shard.Digest returns it; zero = it is not
	// known. Form is projection.DigestForm of the program that computed it.
	State events.Hash `json:"state,omitzero"`
	Form  string      `json:"form,omitempty"`
}

// newCheckpoint returns a checkpoint of this moment.
func newCheckpoint(cluster string, heads ...CheckpointHead) Checkpoint {
	return Checkpoint{Cluster: cluster, Time: time.Now().UTC().Truncate(time.Second), Heads: heads}
}

const checkpointTitle = "taskledger checkpoint"

// Checkpoint returns the last entries of all shards that have entries, as their owners serve them. It returns an
// error if an owner does not answer. Each owner, one after the other, computes the digest of its state, and decides
// nothing meanwhile, for one to three microseconds a task.
func (l *Ledger) Checkpoint(ctx context.Context) (Checkpoint, error) {
	if _, err := l.reader(); err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	p := newCheckpoint(l.cfg.Cluster.ID)
	for shard := range l.cfg.Cluster.Shards {
		s := l.cfg.Owners.Digest(ctx, shard)
		if s.Problem != "" {
			return Checkpoint{}, fmt.Errorf("checkpoint: %w: shard %d: %s", store.ErrUnavailable, shard, s.Problem)
		}
		if s.Entry > 0 {
			p.Heads = append(p.Heads, CheckpointHead{shard, s.Entry, s.Hash, s.Digest, projection.DigestForm()})
		}
	}
	return p, nil
}

// String returns the text of the checkpoint.
func (p Checkpoint) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n", checkpointTitle, p.Cluster, p.Time.UTC().Format(time.RFC3339))
	for _, h := range p.Heads {
		fmt.Fprintf(&b, "%d %d %s", h.Shard, h.Entry, h.Hash)
		if h.State != (events.Hash{}) {
			fmt.Fprintf(&b, " %s %s", h.Form, h.State)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// ParseCheckpoint reads what String returns, and nothing else.
func ParseCheckpoint(text string) (p Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[0] != checkpointTitle || lines[len(lines)-1] != "" {
		return p, fmt.Errorf("checkpoint: want %q, the cluster's id, the time, and a line for each head", checkpointTitle)
	}
	p.Cluster = lines[1]
	if p.Time, err = time.Parse(time.RFC3339, lines[2]); err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: time %.100q: want the form of RFC 3339 in UTC", lines[2])
	}
	for _, line := range lines[3 : len(lines)-1] {
		h, err := parseHead(line)
		if err != nil {
			return Checkpoint{}, fmt.Errorf(
				"checkpoint: line %.100q: want shard, entry, hash, and form and digest of the state",
				line,
			)
		}
		p.Heads = append(p.Heads, h)
	}
	if p.String() != text {
		return Checkpoint{}, errors.New(
			"checkpoint: numbers with leading zeros, hashes in capitals, or a time that is not in UTC",
		)
	}
	return p, nil
}

func parseHead(line string) (h CheckpointHead, err error) {
	fields := strings.Split(line, " ")
	if len(fields) != 3 && len(fields) != 5 {
		return h, strconv.ErrSyntax
	}
	shard, err := strconv.ParseUint(fields[0], 10, 16)
	if err != nil {
		return h, err
	}
	h.Shard = int(shard)
	if h.Entry, err = strconv.ParseUint(fields[1], 10, 64); err != nil || h.Entry == 0 {
		return h, strconv.ErrSyntax
	}
	if err := h.Hash.UnmarshalText([]byte(fields[2])); err != nil || len(fields) == 3 {
		return h, err
	}
	h.Form = fields[3]
	if err := h.State.UnmarshalText([]byte(fields[4])); err != nil || h.State != (events.Hash{}) {
		return h, err
	}
	return h, strconv.ErrSyntax // a state that is not known is left out
}

// headsByEntry are the heads of a shard in checkpoints, by their entries.
type headsByEntry map[uint64]CheckpointHead

// headsOf returns what the checkpoints say of entries, by shard.
func headsOf(all []Checkpoint, cluster store.Cluster) (map[int]headsByEntry, error) {
	heads := map[int]headsByEntry{}
	for _, p := range all {
		if p.Cluster != cluster.ID {
			return nil, &store.InvalidError{
				Field:   "checkpoint",
				Problem: fmt.Sprintf("of cluster %.100q, this is %s", p.Cluster, cluster.ID),
			}
		}
		for _, h := range p.Heads {
			if h.Shard >= cluster.Shards {
				return nil, &store.InvalidError{
					Field:   "checkpoint",
					Problem: fmt.Sprintf("of shard %d of %d", h.Shard, cluster.Shards),
				}
			}
			if heads[h.Shard] == nil {
				heads[h.Shard] = headsByEntry{}
			}
			was, known := heads[h.Shard][h.Entry]
			none := events.Hash{}
			switch {
			case known && was.Hash != h.Hash:
				return nil, &store.InvalidError{
					Field:   "checkpoint",
					Problem: fmt.Sprintf("two hashes of entry %d of shard %d", h.Entry, h.Shard),
				}
			case known && was.Form == h.Form && was.State != h.State:
				return nil, &store.InvalidError{
					Field:   "checkpoint",
					Problem: fmt.Sprintf("two states after entry %d of shard %d", h.Entry, h.Shard),
				}
			case known && (h.State == none || was.Form == projection.DigestForm()):
				continue
			}
			heads[h.Shard][h.Entry] = h
		}
	}
	return heads, nil
}
