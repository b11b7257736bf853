package history_test

import (
	"testing"

	"taskledger/integration/robustness/history"
	"taskledger/internal/wire"
)

func ownerValue(session string) []byte {
	w := wire.Writer{}
	w.Array(2)
	w.Uint(1)
	w.Text(session)
	return w.B
}

func nodeValue(slots int, draining bool, behaviors ...string) []byte {
	w := wire.Writer{}
	w.Array(11)
	w.Uint(1)
	w.Text("name")
	w.Text("version")
	w.Text("")
	w.Array(len(behaviors))
	for _, b := range behaviors {
		w.Text(b)
	}
	w.Text("types")
	w.Int(int64(slots))
	w.Bool(true)
	w.Bool(draining)
	w.Int(7)
	w.Bytes(nil)
	return w.B
}

func TestKeyOf_ReadsEveryKind(t *testing.T) {
	for path, want := range map[string]struct {
		key      history.Key
		outlives bool
	}{
		"meta":                         {history.Key{Kind: "meta"}, true},
		"node/s1":                      {history.Key{Kind: "node", Sender: "s1"}, false},
		"owner/3":                      {history.Key{Kind: "owner", Shard: 3}, true},
		"journal/3/000000000000000a":   {history.Key{Kind: "journal", Shard: 3, Number: 10}, true},
		"snapshot/3":                   {history.Key{Kind: "snapshot", Shard: 3}, true},
		"snapshot/3/0000000a-7/000001": {history.Key{Kind: "snapshot", Shard: 3}, true},
		"mailbox/3/s1/0":               {history.Key{Kind: "mailbox", Shard: 3, Sender: "s1"}, false},
		"answer/s1/3/0":                {history.Key{Kind: "answer", Shard: 3, Sender: "s1"}, false},
		"stray/1":                      {history.Key{Kind: "stray"}, false},
	} {
		if k, err := history.KeyOf(path); err != nil || k != want.key || k.Outlives() != want.outlives {
			t.Errorf("%s: %+v, outlives %t, %v", path, k, k.Outlives(), err)
		}
	}
	for _, path := range []string{"owner/x", "owner", "journal/3", "journal/x/1", "journal/1/x", "node/a/b", "mailbox/3/s1", "answer/s1/x/0"} {
		if k, err := history.KeyOf(path); err == nil {
			t.Errorf("%s is read as %+v", path, k)
		}
	}
}

func TestKey_ChangeIsOfNodesAndOwners(t *testing.T) {
	for _, row := range []struct {
		path    string
		value   []byte
		deleted bool
		want    history.KeyChange
		of      bool
	}{
		{"node/s1", nodeValue(3, true, "a", "b"), false, history.KeyChange{Revision: 7, Node: "s1", Slots: 3, Behaviors: "a b", Draining: true}, true},
		{"node/s1", nil, true, history.KeyChange{Revision: 7, Node: "s1", Deleted: true}, true},
		{"owner/3", ownerValue("s1"), false, history.KeyChange{Revision: 7, Shard: 3, Owner: "s1"}, true},
		{"owner/3", nil, true, history.KeyChange{Revision: 7, Shard: 3, Deleted: true}, true},
		{"meta", nil, false, history.KeyChange{}, false},
	} {
		k, err := history.KeyOf(row.path)
		if err != nil {
			t.Fatal(err)
		}
		c, of, err := k.Change(row.value, 7, row.deleted)
		if err != nil || of != row.of || of && c != row.want {
			t.Errorf("%s: %+v, %t, %v", row.path, c, of, err)
		}
	}
	for _, kind := range []string{"owner", "node"} {
		if _, _, err := (history.Key{Kind: kind}).Change([]byte("damaged"), 7, false); err == nil {
			t.Errorf("a damaged %s key is read", kind)
		}
	}
}

func TestIsSlot_IsALetterWithoutABatch(t *testing.T) {
	letter := func(batch []byte) []byte {
		w := wire.Writer{}
		w.Array(2)
		w.Uint(1)
		w.Bytes(batch)
		return w.B
	}
	if !history.IsSlot(letter(nil)) || history.IsSlot(letter([]byte("batch"))) || history.IsSlot([]byte("damaged")) {
		t.Error("slots are told from letters wrongly")
	}
}
