package events_test

import (
	"strings"
	"testing"

	"taskledger/events"
)

func TestTaskID_Rules(t *testing.T) {
	name := strings.Repeat("n", events.MaxIDBytes)
	for _, row := range []struct {
		id    string
		valid bool
	}{
		{"a", true}, {"A-z_0.9:x", true}, {"orders/purge", true}, {"a/b", true}, {"...", true}, {":/-", true}, {".a/b..", true},
		{name, true}, {name[:64] + "/" + name[:63], true}, {string(events.Settings), true},
		{"", false}, {"/", false}, {"a/", false}, {"/b", false}, {"a/b/c", false}, {"a//b", false}, {"a b", false}, {"a\n", false},
		{"a*", false}, {"a>", false}, {"a\\b", false}, {"\u00e4", false}, {"a\x00", false}, {"a\xff", false}, {"a\u202e", false},
		{".", false}, {"..", false}, {"a/.", false}, {"a/..", false}, {"./a", false}, {"../a", false}, {"./..", false},
		{name + "n", false}, {name[:64] + "/" + name[:64], false},
	} {
		if err := events.TaskID(row.id).Validate(); (err == nil) != row.valid {
			t.Errorf("Validate(%q) = %v, want valid %v", row.id, err, row.valid)
		}
	}
}

// A byte alone is no character of a text in UTF-8.
func TestTaskID_TellsTheCharacterThatItHasNot(t *testing.T) {
	for id, want := range map[string]string{"\u00fcn\u00ef": "byte 0 is 'ü'", "a\xff": "byte 1 is 0xFF", "a\xc3": "byte 1 is 0xC3", "a b": "byte 1 is ' '", "a\n": `byte 1 is '\n'`} {
		for _, err := range []error{events.TaskID(id).Validate(), events.ValidateStore(id)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", id, err, want)
			}
		}
	}
}

func TestTaskID_EveryByteIsEitherInTheAlphabetOrRefused(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	for c := range 256 {
		want := strings.IndexByte(alphabet, byte(c)) >= 0
		if got := events.TaskID([]byte{'a', byte(c), 'b'}).Validate() == nil; got != (want || c == '/') {
			t.Errorf("byte %#02x in the middle of a task id: valid %v", c, got)
		}
	}
}

func TestTaskID_AffinityIsThePartBeforeTheSlash(t *testing.T) {
	for id, want := range map[events.TaskID]string{"orders/purge": "orders", "cleanup": "cleanup", "a/b": "a"} {
		if got := id.Affinity(); got != want {
			t.Errorf("Affinity of %q = %q, want %q", id, got, want)
		}
	}
}

// The shard of an id is part of the stored format: a cluster that computed it otherwise would not find its tasks.
func TestTaskID_ShardIsPinned(t *testing.T) {
	for _, row := range []struct {
		id events.TaskID
		of map[int]int
	}{
		{"cleanup", map[int]int{1: 0, 16: 2, 64: 2, 256: 194}},
		{"orders/purge", map[int]int{1: 0, 16: 5, 64: 53, 256: 117}},
		{"orders", map[int]int{1: 0, 16: 5, 64: 53, 256: 117}},
		{events.Settings, map[int]int{1: 0, 16: 1, 64: 33, 256: 97}},
		{"a", map[int]int{1: 0, 16: 11, 64: 27, 256: 91}},
	} {
		for count, want := range row.of {
			if got := row.id.Shard(count); got != want {
				t.Errorf("%q lives in shard %d of %d, want %d", row.id, got, count, want)
			}
		}
	}
}

func TestTaskID_TasksOfAnAffinityShareAShard(t *testing.T) {
	for _, count := range []int{1, 16, 64, 256} {
		want := events.TaskID("orders").Shard(count)
		for _, id := range []events.TaskID{"orders/purge", "orders/a", "orders/b:c"} {
			if got := id.Shard(count); got != want {
				t.Errorf("%q lives in shard %d of %d, its affinity in %d", id, got, count, want)
			}
		}
	}
}

func TestValidateBehavior_Rules(t *testing.T) {
	longest := strings.Repeat("b", events.MaxBehaviorBytes)
	for id, valid := range map[string]bool{
		"a": true, "purge-table": true, "-": true, "2nd": true, longest: true,
		"": false, longest + "b": false, "Purge": false, "a.b": false, "a_b": false, "a b": false, "a/b": false, "a*": false, "\u00e4": false,
	} {
		if err := events.ValidateBehavior(id); (err == nil) != valid {
			t.Errorf("ValidateBehavior(%q) = %v, want valid %v", id, err, valid)
		}
	}
}
