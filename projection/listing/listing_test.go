package listing_test

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/projection/taskview"
	"taskledger/task"
)

const begin events.Millis = 1_800_000_000_000

// journal is a shard that tests write to.
type journal struct {
	t     *rapid.T
	state *projection.Shard
	now   events.Millis
}

func (j *journal) append(id events.TaskID, body events.Body, by string) {
	t := j.state.Task(id)
	ev := events.Event{Task: id, Seq: 1, Body: body, At: j.now, Caller: events.Caller{Principal: by}, Position: events.Position{Ref: events.RefOf(j.state.Number+1, 0)}}
	if t != nil {
		ev.Seq, ev.Prev = t.Seq+1, t.Last
	}
	if _, err := j.state.Apply(t, &ev); err != nil {
		j.t.Fatalf("%s of %s: %v", ev.Kind(), id, err)
	}
	j.state.Seal(&events.Entry{Number: j.state.Number + 1, Time: j.now})
	j.state.MakeDue(j.now)
}

// step creates a task, or changes or deletes one.
func (j *journal) step(ids []events.TaskID) {
	j.now += events.Millis(rapid.IntRange(0, 3).Draw(j.t, "pause"))
	id := rapid.SampledFrom(ids).Draw(j.t, "task")
	t := j.state.Task(id)
	switch {
	case t == nil:
		p, err := events.Policy{}.Complete()
		if err != nil {
			j.t.Fatal(err)
		}
		j.append(id, &events.Created{Behavior: rapid.SampledFrom([]string{"work", "purge"}).Draw(j.t, "behavior"), Policy: p,
			NotBefore: j.now + events.Millis(rapid.IntRange(0, 4).Draw(j.t, "delay"))}, rapid.SampledFrom([]string{"ada", "bob"}).Draw(j.t, "creator"))
	case t.OnNode() && rapid.Bool().Draw(j.t, "succeeds"):
		j.append(id, &events.Succeeded{Run: t.Runs + 1}, "")
	case t.OnNode():
		j.append(id, &events.Failed{Error: events.Error{Code: events.CodeFailed, Message: "m"}, Run: t.Runs + 1}, "")
	case !t.Final() && t.Due <= j.now && !t.Suspended && rapid.Bool().Draw(j.t, "starts"):
		j.append(id, &events.Started{Node: rapid.SampledFrom([]string{"n-1", "n-2"}).Draw(j.t, "node"), Attempt: t.Attempt + 1, Lease: 9000}, "")
	case t.Status != task.Running && rapid.Bool().Draw(j.t, "goes"):
		j.append(id, &events.Deleted{}, "")
	case !t.Suspended:
		j.append(id, &events.Suspended{}, "")
	default:
		j.append(id, &events.Resumed{}, "")
	}
}

func genFilter(t *rapid.T, now events.Millis) (f task.Filter) {
	some := func(name string) bool { return rapid.IntRange(0, 4).Draw(t, name) == 0 }
	at := func(name string) time.Time {
		return (begin + events.Millis(rapid.Int64Range(0, int64(now-begin)+2).Draw(t, name))).Time()
	}
	if some("status") {
		f.Status = task.Status(rapid.IntRange(1, 4).Draw(t, "which"))
	}
	if some("substatus") {
		f.Substatus = task.Substatus(rapid.IntRange(1, 10).Draw(t, "which"))
	}
	if some("behavior") {
		f.Behavior = rapid.SampledFrom([]string{"work", "purge", "other"}).Draw(t, "which")
	}
	if some("creator") {
		f.Creator = rapid.SampledFrom([]string{"ada", "bob", "eve"}).Draw(t, "which")
	}
	if some("affinity") {
		f.Affinity = rapid.SampledFrom([]string{"a", "ab", "c"}).Draw(t, "which")
	}
	if some("prefix") {
		f.AffinityPrefix = rapid.SampledFrom([]string{"a", "ab", "x"}).Draw(t, "which")
	}
	if some("node") {
		f.Node = rapid.SampledFrom([]string{"n-1", "n-2", "n-3"}).Draw(t, "which")
	}
	if some("created from") {
		f.CreatedFrom = at("from")
	}
	if some("created to") {
		f.CreatedTo = at("to")
	}
	if some("ended from") {
		f.EndedFrom = at("from")
	}
	if some("ended to") {
		f.EndedTo = at("to")
	}
	return f
}

// matches tells what a filter means, in the words of its fields.
func matches(f task.Filter, t *projection.Task, now events.Millis) bool {
	within := func(at events.Millis, from, to time.Time) bool {
		return (from.IsZero() || !at.Time().Before(from)) && (to.IsZero() || at.Time().Before(to))
	}
	substatus, _ := t.Substatus(now)
	ended := f.EndedFrom.IsZero() && f.EndedTo.IsZero() || t.EndedAt != 0 && within(t.EndedAt, f.EndedFrom, f.EndedTo)
	return (f.Status == 0 || f.Status == t.Status) && (f.Substatus == 0 || f.Substatus == substatus) && (f.Behavior == "" || f.Behavior == t.Kind.Behavior) &&
		(f.Creator == "" || f.Creator == t.Kind.Creator) && (f.Affinity == "" || f.Affinity == t.ID.Affinity()) &&
		strings.HasPrefix(t.ID.Affinity(), f.AffinityPrefix) && (f.Node == "" || f.Node == t.Node) && within(t.CreatedAt, f.CreatedFrom, f.CreatedTo) && ended
}

// life names a life of a task.
type life struct {
	id      events.TaskID
	created events.Ref
}

func lives(s *projection.Shard, f task.Filter, now events.Millis) map[life]bool {
	all := map[life]bool{}
	for t := range s.Tasks() {
		if matches(f, t, now) {
			all[life{t.ID, t.Created}] = true
		}
	}
	return all
}

func never() bool { return false }

// Parts of any size, between which tasks are created, changed and deleted, tell no task twice, none that does not
// match, and all that matched from the first part to the last.
func TestLook_TellsEachTaskOnceThatMatchesThroughout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := &journal{t: t, state: projection.NewShard(0), now: begin}
		var ids []events.TaskID
		for _, affinity := range []string{"a", "ab", "c"} {
			for i := range 40 {
				ids = append(ids, events.TaskID(fmt.Sprintf("%s/%d", affinity, i)))
			}
		}
		for range rapid.IntRange(0, 300).Draw(t, "before") {
			j.step(ids)
		}
		f := genFilter(t, j.now)
		throughout, told := lives(j.state, f, j.now), map[life]bool{}
		var from listing.Place
		last := listing.Newest
		for done := false; !done; {
			limit, most := rapid.IntRange(1, 20).Draw(t, "limit"), rapid.IntRange(1, 90).Draw(t, "most")
			found := listing.Look(j.state, f, from, limit, most, never)
			if len(found.Tasks) > limit || found.Looked > most || !found.Done && found.Looked == 0 {
				t.Fatalf("%d tasks of %d that were looked at; want at most %d of %d, and some", len(found.Tasks), found.Looked, limit, most)
			}
			for _, task := range found.Tasks {
				l, key := life{task.ID, task.Created}, listing.KeyOf(task, 0)
				if told[l] || !matches(f, task, j.now) || key.Compare(last) >= 0 {
					t.Fatalf("%v is told: twice %t, matches %t, after %v", l, told[l], matches(f, task, j.now), last)
				}
				told[l], last = true, key
			}
			from, done = found.Next, found.Done
			for of := range j.state.Tasks() {
				shown := taskview.Of(of, 1, j.now)
				if is := listing.Matches(f, &shown); is != matches(f, of, j.now) {
					t.Fatalf("%s matches %+v: %t", of.ID, f, is)
				}
			}
			for range rapid.IntRange(0, 5).Draw(t, "between") {
				j.step(ids)
				maps.DeleteFunc(throughout, func(l life, _ bool) bool { return !lives(j.state, f, j.now)[l] })
			}
		}
		for l := range throughout {
			if !told[l] {
				t.Fatalf("%v matched all the time and was not told, with %+v", l, f)
			}
		}
	})
}

func TestLook_StopsWhenItIsTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := &journal{t: t, state: projection.NewShard(0), now: begin}
		p, err := events.Policy{}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		const tasks = 1000
		for i := range tasks {
			j.append(events.TaskID(fmt.Sprint(i)), &events.Created{Behavior: "work", Policy: p, NotBefore: j.now}, "ada")
		}
		left := rapid.IntRange(0, 10).Draw(t, "stretches")
		allowed := left
		found := listing.Look(j.state, task.Filter{}, listing.Place{}, tasks, tasks, func() bool { left--; return left < 0 })
		if found.Done || len(found.Tasks) > 64*(allowed+1) || len(found.Tasks) == 0 {
			t.Fatalf("%d tasks after %d stretches", len(found.Tasks), allowed)
		}
		rest := listing.Look(j.state, task.Filter{}, found.Next, tasks, tasks, never)
		if !rest.Done || len(found.Tasks)+len(rest.Tasks) != tasks {
			t.Fatalf("%d and %d tasks of %d", len(found.Tasks), len(rest.Tasks), tasks)
		}
	})
}

func genKey(t *rapid.T, shards int) listing.Key {
	return listing.Key{At: events.Millis(rapid.Int64Range(0, 1<<50).Draw(t, "at")), Shard: rapid.IntRange(0, shards-1).Draw(t, "shard"), Ref: events.Ref(rapid.Uint64().Draw(t, "ref"))}
}

func TestCursor_IsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genFilter(t, begin+100)
		c := listing.Begin(task.Filter{}, rapid.SampledFrom([]int{1, 16, 256}).Draw(t, "shards"))
		c.Cluster = rapid.StringN(0, 20, 40).Draw(t, "cluster")
		some := []listing.Key{listing.Newest, {}, genKey(t, len(c.From)), genKey(t, len(c.From))}
		for shard := range c.From {
			c.From[shard] = rapid.SampledFrom(some).Draw(t, "key")
		}
		text := c.Text(f)
		f.Limit = 7
		got, err := listing.ParseCursor(text, f, len(c.From), c.Cluster)
		if err != nil || got.Cluster != c.Cluster || !slices.Equal(got.From, c.From) {
			t.Fatalf("read %+v, %v; want %+v", got, err, c)
		}
	})
}

func TestCursor_OfAnotherListIsRefused(t *testing.T) {
	f := task.Filter{Behavior: "work"}
	text := listing.Begin(f, 16).Text(f)
	for says, err := range map[string]error{
		"another filter":   second(listing.ParseCursor(text, task.Filter{Behavior: "purge"}, 16, "")),
		"a cluster of 16":  second(listing.ParseCursor(text, f, 32, "")),
		"altered":          second(listing.ParseCursor(text[:len(text)-2]+"AA", f, 16, "")),
		"it is none":       second(listing.ParseCursor("none", f, 16, "")),
		"exceed the limit": second(listing.ParseCursor(strings.Repeat("A", 1<<20), f, 16, "")),
		"another cluster":  second(listing.ParseCursor(text, f, 16, "other")),
		"or was altered":   second(listing.ParseCursor(text+"!", f, 16, "")),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// A cursor of another version has the version that is not ours, and a sum that fits.
func TestCursor_OfAnotherVersionIsRefusedByName(t *testing.T) {
	f := task.Filter{Behavior: "work"}
	data, err := base64.RawURLEncoding.DecodeString(listing.Begin(f, 16).Text(f))
	if err != nil {
		t.Fatal(err)
	}
	data = data[:len(data)-4]
	data[1]++ // after the array that it is
	data = binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data[:len(data)-1]))
	_, err = listing.ParseCursor(base64.RawURLEncoding.EncodeToString(data), f, 16, "")
	if want := fmt.Sprintf("it is of version %d, this program reads %d", data[1], data[1]-1); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A sum that fits is no proof: everybody can make one.
func TestCursor_ThatNoListHasLeftIsRefused(t *testing.T) {
	f := task.Filter{Behavior: "work"}
	type key struct {
		in     uint64
		shards []uint64
	}
	forged := func(values int, keys ...key) string {
		var w wire.Writer
		w.Array(values)
		w.Uint(1)
		w.Text("c")
		w.Uint(listing.Digest(f))
		w.Uint(2)
		w.Array(len(keys))
		for _, k := range keys {
			w.Array(4)
			w.Int(7)
			w.Uint(k.in)
			w.Uint(9)
			w.Array(len(k.shards))
			for _, shard := range k.shards {
				w.Uint(shard)
			}
		}
		if values > 6 {
			w.Uint(0)
		}
		w.B = binary.BigEndian.AppendUint32(append(w.B, 0xce), crc32.ChecksumIEEE(w.B))
		return base64.RawURLEncoding.EncodeToString(w.B)
	}
	both := key{1, []uint64{0, 1}}
	if c, err := listing.ParseCursor(forged(6, both), f, 2, "c"); err != nil || c.From[0] != c.From[1] {
		t.Errorf("what a list has left: %+v, %v", c, err)
	}
	for what, text := range map[string]string{
		"a value more":                 forged(7, both),
		"a key of a shard that is not": forged(6, key{2, both.shards}),
		"a shard that is not":          forged(6, key{1, []uint64{0, 1, 2}}),
		"a shard twice":                forged(6, both, key{0, []uint64{1}}),
		"a shard without a key":        forged(6, key{1, []uint64{1}}),
	} {
		if c, err := listing.ParseCursor(text, f, 2, "c"); err == nil || !strings.Contains(err.Error(), "it is none, or was altered") {
			t.Errorf("%s: %v; read as %+v", what, err, c)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Whatever a key is, the places that it names in the shards part the tasks as the keys do.
func TestKey_PartsTheTasksOfEveryShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := func() listing.Key {
			return listing.Key{At: events.Millis(rapid.Int64Range(1, 4).Draw(t, "at")), Shard: rapid.IntRange(0, 2).Draw(t, "shard"), Ref: events.Ref(rapid.Uint64Range(1, 4).Draw(t, "ref"))}
		}
		k, task := gen(), gen()
		p := k.In(task.Shard)
		held := (p.Before == 0 || task.Ref < p.Before) && (p.Until == 0 || task.At <= p.Until)
		if p.Before != 0 && task.At < k.At && task.Ref >= k.Ref || p.Before != 0 && task.At > k.At && task.Ref < k.Ref {
			return // time never runs back in a shard
		}
		if want := cmp.Compare(task.Compare(k), 0) < 0; held != want {
			t.Fatalf("the place %+v of %+v holds %+v: %t, want %t", p, k, task, held, want)
		}
	})
}

// FuzzParseCursor reads any text as a cursor.
func FuzzParseCursor(f *testing.F) {
	c := listing.Begin(task.Filter{}, 4)
	c.From[1] = listing.Key{}
	f.Add(c.Text(task.Filter{}))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := listing.ParseCursor(text, task.Filter{}, 4, "")
		if err != nil {
			return
		}
		if again, err := listing.ParseCursor(c.Text(task.Filter{}), task.Filter{}, 4, ""); err != nil || !slices.Equal(again.From, c.From) {
			t.Fatalf("read again: %+v, %v; want %+v", again, err, c)
		}
	})
}
