package bulk

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"slices"
	"testing"

	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

var sought = task.Filter{Status: task.Failure, Node: "worker-abcdefghij"}

// sample is a cursor in the midst of a list.
func sample() cursor {
	c := begin(sought, task.Retry, false)
	c.Cluster, c.List = "c", "a list"
	for shard := range store.MaxShards {
		c.Began = append(c.Began, uint64(shard)<<32)
	}
	return c
}

// FuzzParse reads any text as a cursor: what is accepted is written and read again as the same.
func FuzzParse(f *testing.F) {
	want := begin(sought, task.Retry, false)
	f.Add(sample().text())
	f.Add(want.text())
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse(text, want)
		if err != nil || text == "" {
			return
		}
		if again, err := parse(c.text(), want); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v is read again as %+v, %v", c, again, err)
		}
	})
}

func TestParse_BombsCostLittle(t *testing.T) {
	data, err := base64.RawURLEncoding.DecodeString(sample().text())
	if err != nil {
		t.Fatal(err)
	}
	testkit.CheckGrafts(t, data[:len(data)-crc32.Size], maxCursor/2, func(b []byte) error {
		summed := binary.BigEndian.AppendUint32(slices.Clip(b), crc32.ChecksumIEEE(b)) // else that is all that is looked at
		_, err := parse(base64.RawURLEncoding.EncodeToString(summed), begin(sought, task.Retry, false))
		return err
	})
}

func TestParse_RefusesACursorOfMoreShardsThanThereAre(t *testing.T) {
	most := sample()
	if _, err := parse(most.text(), begin(sought, task.Retry, false)); err != nil {
		t.Errorf("%d shards: %v", len(most.Began), err)
	}
	most.Began = append(most.Began, 1)
	if _, err := parse(most.text(), begin(sought, task.Retry, false)); err == nil {
		t.Errorf("%d shards are taken", len(most.Began))
	}
}
