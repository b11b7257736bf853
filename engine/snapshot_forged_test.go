package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
)

// forge alters the number or the hash in the head of every part of a snapshot, or the rest, and makes all sums
// right again: those of the parts, and the pointer's.
func (g *ground) forge(t *testing.T, s store.SnapshotInfo, alter func(number, hash, rest []byte)) {
	t.Helper()
	rec, err := g.store.Entry(within(t), 0, s.Entry)
	if err != nil {
		t.Fatal(err)
	}
	e, err := events.Decode(rec.Data)
	if err != nil {
		t.Fatal(err)
	}
	sums := sha256.New()
	for part := range s.Parts {
		g.change(t, strings.TrimSuffix(partKey(s), "00000000")+fmt.Sprintf("%08x", part), func(value []byte) []byte {
			at := bytes.Index(value, e.Hash[:])
			alter(value[:at-2], value[at:at+len(e.Hash)], value[at+len(e.Hash):len(value)-5]) // between the first two is the length of the hash
			content, sum := value[:len(value)-5], value[len(value)-4:]
			binary.BigEndian.PutUint32(sum, crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
			digest := sha256.Sum256(value)
			sums.Write(digest[:])
			return value
		})
	}
	g.change(t, pointerKey, func(value []byte) []byte { return bytes.Replace(value, s.Hash[:], sums.Sum(nil), 1) })
}

// raise makes a number larger whose bytes are the last ones, without a carry.
func raise(number []byte) {
	last := len(number) - 1
	for number[last] == 0xff {
		last--
	}
	number[last] |= number[last] + 1
}

// A snapshot that is sound in itself, but not the state after the entry that the pointer names, is passed over as a
// damaged one is.
func TestSnapshot_OfAnotherStateIsPassedOver(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(number, hash, rest []byte){
		"of a later entry":   func(number, _, _ []byte) { raise(number) },
		"of another history": func(_, hash, _ []byte) { hash[0] ^= 1 },
	} {
		for _, mode := range []string{"keep", "drop"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				g := newGround(t, mode)
				before := g.load(t)
				g.forge(t, before.Kept[0], alter)
				forged := g.pointer(t)
				n := g.node(t)
				testcluster.Await(t, "a sound snapshot", func() bool {
					asked, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if infos, err := n.Operations().Shards(asked); err == nil && infos[0].Problem != "" {
						t.Fatalf("the shard is not served: %s", infos[0].Problem)
					}
					return g.pointer(t).Revision > forged.Revision
				})
				wantServed(t, n)
			})
		}
	}
}

// Two sound snapshots are witnesses of what the journal was: one that contradicts both was replaced.
func TestSnapshot_BothOfAnotherHistoryQuarantineTheShard(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"keep", "archive"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, mode)
			for _, s := range g.load(t).Kept {
				g.forge(t, s, func(_, hash, _ []byte) { hash[0] ^= 1 })
			}
			wantQuarantined(t, g.node(t).Client, 0, 2, "another history")
		})
	}
}

// What another build has written may hold more than this one can fold. Whoever goes on from an earlier state loses
// that.
func TestSnapshot_WithASectionThatIsNotKnownIsRefusedByNameAndNotPassedOver(t *testing.T) {
	t.Parallel()
	g := newGround(t, "keep")
	g.forge(t, g.load(t).Kept[0], func(_, _, rest []byte) {
		copy(rest, bytes.ReplaceAll(rest, []byte("\xa7senders"), []byte("\xa7tenders")))
	})
	n := g.node(t)
	wantQuarantined(t, n.Client, 0, 2, `section "tenders" of a snapshot, which this program does not know`)
	wantQuarantined(t, n.Client, 0, 2, "let nodes of the version of taskledger that wrote it serve the shard")
}

// A snapshot whose hash is right, of tasks that are not those of the fold.
func TestVerify_ASnapshotOfOtherTasksIsFound(t *testing.T) {
	t.Parallel()
	g := newGround(t, "keep")
	newest := g.load(t).Kept[0]
	g.forge(t, newest, func(_, _, rest []byte) {
		at := bytes.Index(rest, []byte("load"))
		rest[at] = 'm'
	})
	c := runClient(t, engine.ClientConfig{Store: g.store})
	found, err := c.Ledger().Verify(within(t), ledger.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v := found[0]; v.Damage != ledger.DamageSnapshot || v.At != newest.Entry {
		t.Errorf("shard 0: %q at entry %d (%s), want %q at %d", v.Damage, v.At, v.Problem, ledger.DamageSnapshot, newest.Entry)
	}
	if v := found[1]; v.Damage != "" {
		t.Errorf("shard 1: %s", v.Problem)
	}
}
