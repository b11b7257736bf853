package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"taskledger/events"
	"taskledger/store"
)

// Checkpoint is the chain hashes of the last entries of the shards. An auditor keeps it, signed by the operator, in order to prove later
// that nothing before it was changed. Its text, which is the body of a signed note, is
//
//	taskledger checkpoint
//	<cluster id>
//	<shard> <entry> <hash, 64 hex digits>
//	...
//
// with one line for each head, ending in a newline.
type Checkpoint struct {
	Cluster string           `json:"cluster"` // its id
	Heads   []CheckpointHead `json:"heads"`
}

// CheckpointHead is the chain hash of an entry.
type CheckpointHead struct {
	Shard int         `json:"shard"`
	Entry uint64      `json:"entry"` // from 1
	Hash  events.Hash `json:"hash"`
}

const checkpointTitle = "taskledger checkpoint"

// Checkpoint returns the last entries of all shards that have entries, as their owners serve them. It returns an error if an owner
// does not answer.
func (l *Ledger) Checkpoint(ctx context.Context) (Checkpoint, error) {
	if _, err := l.reader(); err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	served, err := l.cfg.Owners.Heads(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	p := Checkpoint{Cluster: l.cfg.Cluster.ID}
	for _, s := range served {
		if s.Problem != "" {
			return Checkpoint{}, fmt.Errorf("checkpoint: %w: shard %d: %s", store.ErrUnavailable, s.Shard, s.Problem)
		}
		if s.Entry > 0 {
			p.Heads = append(p.Heads, CheckpointHead{s.Shard, s.Entry, s.Hash})
		}
	}
	return p, nil
}

// String returns the text of the checkpoint.
func (p Checkpoint) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", checkpointTitle, p.Cluster)
	for _, h := range p.Heads {
		fmt.Fprintf(&b, "%d %d %s\n", h.Shard, h.Entry, h.Hash)
	}
	return b.String()
}

// ParseCheckpoint reads what String returns, and nothing else.
func ParseCheckpoint(text string) (p Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 3 || lines[0] != checkpointTitle || lines[len(lines)-1] != "" {
		return p, fmt.Errorf("checkpoint: want %q, the cluster's id, and a line for each head", checkpointTitle)
	}
	p.Cluster = lines[1]
	for _, line := range lines[2 : len(lines)-1] {
		h, err := parseHead(line)
		if err != nil {
			return Checkpoint{}, fmt.Errorf("checkpoint: line %.100q: want shard, entry and hash", line)
		}
		p.Heads = append(p.Heads, h)
	}
	if p.String() != text {
		return Checkpoint{}, errors.New("checkpoint: numbers with leading zeros, or hashes in capitals")
	}
	return p, nil
}

func parseHead(line string) (h CheckpointHead, err error) {
	fields := strings.Split(line, " ")
	if len(fields) != 3 {
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
	return h, h.Hash.UnmarshalText([]byte(fields[2]))
}

// headsOf returns the hashes that the checkpoints give to entries, by shard and number.
func headsOf(all []Checkpoint, cluster store.Cluster) (map[int]map[uint64]events.Hash, error) {
	heads := map[int]map[uint64]events.Hash{}
	for _, p := range all {
		if p.Cluster != cluster.ID {
			return nil, &store.InvalidError{Field: "checkpoint", Problem: fmt.Sprintf("of cluster %.100q, this is %s", p.Cluster, cluster.ID)}
		}
		for _, h := range p.Heads {
			if h.Shard >= cluster.Shards {
				return nil, &store.InvalidError{Field: "checkpoint", Problem: fmt.Sprintf("of shard %d of %d", h.Shard, cluster.Shards)}
			}
			if heads[h.Shard] == nil {
				heads[h.Shard] = map[uint64]events.Hash{}
			}
			if was, known := heads[h.Shard][h.Entry]; known && was != h.Hash {
				return nil, &store.InvalidError{Field: "checkpoint", Problem: fmt.Sprintf("two hashes of entry %d of shard %d", h.Entry, h.Shard)}
			}
			heads[h.Shard][h.Entry] = h.Hash
		}
	}
	return heads, nil
}
