package etcdstore_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
)

func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(text)
}

func goldenValue(t testing.TB, name string) []byte {
	t.Helper()
	b, err := hex.DecodeString(string(golden(t, name+".hex")))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantValue(t *testing.T, name string, got []byte) {
	t.Helper()
	if want := goldenValue(t, name); !bytes.Equal(got, want) {
		t.Errorf("%s is encoded as\n%x, stored form is\n%x", name, got, want)
	}
}

// wantNode is wantValue of a node key, whose reserved element is not empty in the stored forms.
func wantNode(t *testing.T, name string, n store.NodeInfo) {
	t.Helper()
	want := bytes.Replace(goldenValue(t, name), []byte("\xad10.0.0.1:7000"), []byte{0xa0}, 1)
	if got := etcdstore.EncodeNode(n); !bytes.Equal(got, want) {
		t.Errorf("%s is encoded as\n%x, stored form is\n%x", name, got, want)
	}
}

func TestFormat_KeysAreWhatTheyWere(t *testing.T) {
	k := etcdstore.KeysOf("cluster-1")
	got := strings.Join([]string{k.Meta(), k.Node("abcdefghijklmnop"), k.Owner(12), k.Entry(12, 0xabcdef), k.Pointer(12),
		k.Part(12, store.SnapshotInfo{Entry: 0xabcdef, Epoch: 1234}, 0x1f), k.Batch(12, "sender-1", 3), k.Answer("sender-1", 12, 3), k.Written(), k.Loss(12)}, "\n")
	if want := string(golden(t, "keys.txt")); got != want {
		t.Errorf("keys are\n%s\nstored ones are\n%s", got, want)
	}
}

func TestFormat_ValuesAreWhatTheyWere(t *testing.T) {
	key := bytes.Repeat([]byte{0xab}, 32)
	wantValue(t, "meta", etcdstore.EncodeMeta(16, "mnopqrstuvwxyz23", key))
	if shards, id, got, err := etcdstore.DecodeMeta(goldenValue(t, "meta")); shards != 16 || id != "mnopqrstuvwxyz23" || !bytes.Equal(got, key) || err != nil {
		t.Errorf("meta is %d, %q, %x, %v", shards, id, got, err)
	}

	node := store.NodeInfo{Name: "node-1", Version: "1.2.3", Behaviors: []string{"purge", "reindex"},
		Types: "0f0f", Slots: -1, Owner: true, Draining: true, Joined: 1_700_000_000_123, Load: []byte{1, 2}}
	wantNode(t, "node", node)
	if got, err := etcdstore.DecodeNode(goldenValue(t, "node")); !reflect.DeepEqual(got, node) || err != nil {
		t.Errorf("node is %+v, %v", got, err)
	}

	node.Limits = map[string]int{"reindex": 0, "purge": 7}
	wantNode(t, "node-limits", node)
	if got, err := etcdstore.DecodeNode(goldenValue(t, "node-limits")); !reflect.DeepEqual(got, node) || err != nil {
		t.Errorf("node is %+v, %v", got, err)
	}

	node.Reads, node.Limits = store.Reads{Kind: 19, Entry: 3, Snapshot: 2, Rules: 1}, nil
	wantNode(t, "node-reads", node)
	if got, err := etcdstore.DecodeNode(goldenValue(t, "node-reads")); !reflect.DeepEqual(got, node) || err != nil {
		t.Errorf("node is %+v, %v", got, err)
	}

	wantValue(t, "written", etcdstore.EncodeWritten(node.Reads))
	if got, err := etcdstore.DecodeWritten(goldenValue(t, "written")); got != node.Reads || err != nil {
		t.Errorf("written is %+v, %v", got, err)
	}

	wantValue(t, "owner", etcdstore.EncodeOwner("abcdefghijklmnop"))
	if got, err := etcdstore.DecodeOwner(goldenValue(t, "owner")); got != "abcdefghijklmnop" || err != nil {
		t.Errorf("owner is %q, %v", got, err)
	}

	for name, kept := range map[string][]store.SnapshotInfo{
		"pointer": {
			{Entry: 4711, Epoch: 1234, Parts: 300, Bytes: 19_000_000, Hash: events.Hash{0: 0xab, 31: 0xcd}},
			{Entry: 4000, Epoch: 1234, Parts: 1, Bytes: 70},
		},
		"pointer-one": {{Entry: 1, Epoch: 7, Parts: 1, Bytes: 0}},
	} {
		wantValue(t, name, etcdstore.EncodePointer(kept))
		if got, err := etcdstore.DecodePointer(goldenValue(t, name)); !reflect.DeepEqual(got, kept) || err != nil {
			t.Errorf("%s names %+v, %v", name, got, err)
		}
	}

	loss := store.Loss{Entry: 4711, Hash: events.Hash{0: 0xab, 31: 0xcd}, Reason: "the store was restored"}
	wantValue(t, "loss", etcdstore.EncodeLoss(loss))
	if got, err := etcdstore.DecodeLoss(goldenValue(t, "loss")); got != loss || err != nil {
		t.Errorf("loss is %+v, %v", got, err)
	}

	for name, data := range map[string][]byte{"mail": []byte("batch"), "slot": nil} {
		wantValue(t, name, etcdstore.EncodeMailboxValue(data))
		if got, err := etcdstore.DecodeMailboxValue(goldenValue(t, name)); !bytes.Equal(got, data) || (got == nil) != (data == nil) || err != nil {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

func TestFormat_PointerThatMakesNoSenseIsRefused(t *testing.T) {
	sound := store.SnapshotInfo{Entry: 9, Epoch: 7, Parts: 3, Bytes: 100}
	changed := func(change func(s *store.SnapshotInfo)) []store.SnapshotInfo {
		s := sound
		change(&s)
		return []store.SnapshotInfo{s}
	}
	for _, c := range []struct {
		want string // in the error; "" = none
		kept []store.SnapshotInfo
	}{
		{"", []store.SnapshotInfo{sound}},
		{"", []store.SnapshotInfo{{Entry: 10, Epoch: 7, Parts: 1}, sound}},
		{"pointer to 0 snapshots", nil},
		{"more than two snapshots", []store.SnapshotInfo{{Entry: 11, Epoch: 7, Parts: 1}, {Entry: 10, Epoch: 7, Parts: 1}, sound}},
		{"snapshot of entry 0 in epoch 7", changed(func(s *store.SnapshotInfo) { s.Entry = 0 })},
		{"entry 9 in epoch 0", changed(func(s *store.SnapshotInfo) { s.Epoch = 0 })},
		{"entry 9 in epoch -1", changed(func(s *store.SnapshotInfo) { s.Epoch = -1 })},
		{"epoch 7, 0 parts", changed(func(s *store.SnapshotInfo) { s.Parts = 0 })},
		{"epoch 7, 1048577 parts", changed(func(s *store.SnapshotInfo) { s.Parts = 1<<20 + 1 })},
		{"3 parts, -1 bytes", changed(func(s *store.SnapshotInfo) { s.Bytes = -1 })},
		{"entry 9 in epoch 7 is not newer than 9 in 7", []store.SnapshotInfo{sound, sound}},
		{"entry 8 in epoch 7 is not newer than 9 in 7", []store.SnapshotInfo{{Entry: 8, Epoch: 7, Parts: 1}, sound}},
		{"entry 10 in epoch 6 is not newer than 9 in 7", []store.SnapshotInfo{{Entry: 10, Epoch: 6, Parts: 1}, sound}},
	} {
		got, err := etcdstore.DecodePointer(etcdstore.EncodePointer(c.kept))
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("pointer names %+v, %v, want %q", got, err, c.want)
		}
	}
	whole := etcdstore.EncodePointer([]store.SnapshotInfo{sound})
	head := len(whole) - len(sound.Hash) - 2 // of the hash, which is the last value
	for n, want := range map[int]string{31: "hash of 31 bytes", 33: "hash of 33 bytes"} {
		var w wire.Writer
		w.Bytes(make([]byte, n))
		if got, err := etcdstore.DecodePointer(append(whole[:head:head], w.B...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pointer names %+v, %v, want %q", got, err, want)
		}
	}
	sameEntry := []store.SnapshotInfo{{Entry: 9, Epoch: 8, Parts: 1}, sound}
	if _, err := etcdstore.DecodePointer(etcdstore.EncodePointer(sameEntry)); err != nil {
		t.Errorf("one entry in two epochs: %v", err)
	}
}

func TestFormat_LossThatMakesNoSenseIsRefused(t *testing.T) {
	for _, c := range []struct {
		hash         int // bytes
		reason, want string
	}{
		{32, strings.Repeat("r", events.MaxNameBytes), ""},
		{31, "", "hash of 31 bytes"},
		{33, "", "hash of 33 bytes"},
		{32, strings.Repeat("r", events.MaxNameBytes+1), "reason of 257 bytes"},
		{32, "\xff", "reason of 1 bytes"},
	} {
		whole := etcdstore.EncodeLoss(store.Loss{Entry: 9})
		w := wire.Writer{B: whole[:len(whole)-35]} // without hash and reason
		w.Bytes(make([]byte, c.hash))
		w.Text(c.reason)
		got, err := etcdstore.DecodeLoss(w.B)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v, %v; want %q", got, err, c.want)
		}
	}
}

func TestFormat_LaterElementsAreIgnored(t *testing.T) {
	b := goldenValue(t, "owner")
	b[0]++ // one element more
	if got, err := etcdstore.DecodeOwner(append(b, 0xc0)); got != "abcdefghijklmnop" || err != nil {
		t.Errorf("owner is %q, %v", got, err)
	}
}

func TestFormat_LaterElementsOfWhatIsReadAreIgnored(t *testing.T) {
	want := store.Reads{Kind: 19, Entry: 3, Snapshot: 2, Rules: 1}
	b := goldenValue(t, "written")
	b[2]++ // one element more
	if got, err := etcdstore.DecodeWritten(append(b, 0x92, 0xc0, 0xa1, 'x')); got != want || err != nil {
		t.Errorf("written is %+v, %v", got, err)
	}
	b = goldenValue(t, "written")
	b[2]-- // one less
	if got, err := etcdstore.DecodeWritten(b[:len(b)-1]); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("a number less is read as %+v, %v", got, err)
	}
}

func TestFormat_LaterVersionsAreRefused(t *testing.T) {
	b := goldenValue(t, "owner")
	b[1]++
	_, err := etcdstore.DecodeOwner(b)
	wantError(t, err, "format version 2")
}
