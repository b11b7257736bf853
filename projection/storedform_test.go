package projection_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/projection"
	"taskledger/projection/requests"
	"taskledger/projection/schedules"
)

var update = flag.Bool("update", false, "write golden files that are missing; existing ones are never changed")

// sampleShard has a task of every phase, with every field set, and two senders. A golden file pins it: it never
// changes.
func sampleShard(t tb) *projection.Shard {
	j := newJournal(t)
	full := policy(t, events.Policy{Timeout: time.Minute, MaxAttempts: 7, MaxLost: 3, LostDelay: 1500 * time.Millisecond,
		Backoff: events.Backoff{Base: 2 * time.Second, Max: 10 * time.Minute}, Existing: events.RunAgain, Priority: 42,
		Retain: 48 * time.Hour, RetainCount: 500, Every: 90 * time.Minute})
	j.entry.AddOrigin(events.Origin{Sender: "c-9f8e", Lane: 2, Number: 5, Caller: events.Caller{Principal: "ada"}, Answers: []byte{1, 2, 3}})
	for _, id := range []events.TaskID{"waits", "runs", "is/lost", "will/retry", "succeeded", "failed"} {
		created := j.next(id, &events.Created{Behavior: "purge-table", Policy: full, Priority: 100, NotBefore: j.now, Params: events.JSON([]byte(`{"a":1}`))})
		created.RequestID, created.Origin = "req-"+string(id), 1
		j.addEvent(created)
		if id != "waits" {
			started := j.started(id)
			started.Offer = 77
			j.add(id, started)
		}
	}
	j.seal(time.Second)
	grace := j.entry.AddOrigin(events.Origin{Sender: "n-0a1b", Number: 900, Caller: events.Caller{Principal: "grace"}})
	j.add("runs", &events.Progressed{Done: 250, Total: -1, Note: "listing"})
	for _, body := range []events.Body{&events.CancelRequested{Reason: "by request"}, &events.Suspended{Reason: "a migration"}} {
		asked := j.next("runs", body)
		asked.Origin = grace
		j.addEvent(asked)
	}
	j.add("runs", &events.Merged{Params: events.JSON([]byte(`{"a":2}`))})
	j.add("waits", &events.Suspended{Reason: "a migration"})
	j.add("will/retry", &events.Suspended{})
	j.add("is/lost", &events.Lost{Until: j.now.Add(time.Minute)})
	failure := events.Error{Code: "forbidden", Message: "no access", Retryable: true, Properties: map[string]string{"user": "ada", "bucket": "b-1"}}
	j.add("will/retry", &events.Failed{Error: failure, Next: j.now.Add(time.Hour)})
	j.add("succeeded", &events.Succeeded{Result: events.JSON([]byte(`{"files":3}`)), Run: 1})
	j.add("failed", &events.Failed{Error: failure, Run: 1})
	c := j.created()
	c.NotBefore = j.now.Add(time.Hour)
	j.add("later", c)
	j.seal(0)
	return j.state
}

// pinned compares got with a golden file; -update adds files and never changes one.
func pinned(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	want, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && *update:
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Fatalf("%v; -update writes it", err)
	case !bytes.Equal(got, want):
		t.Errorf("%s holds\n%s\nthis version writes\n%s\nThe stored form must not change.", path, want, got)
	}
}

func TestGolden_SnapshotIsStoredAsEver(t *testing.T) { golden(t, "snapshot", sampleShard(t)) }

func TestGolden_RecordsThatAreNoTasksAreStoredAsEver(t *testing.T) {
	j := newJournal(t)
	j.add("beside", j.created())
	j.seal(time.Second)
	origin := j.entry.AddOrigin(events.Origin{Sender: "c-9f8e", Number: 5, Caller: events.Caller{Principal: "ada"}})
	for _, body := range append(recordBodies(j), &events.Paused{Behavior: "purge-table", Reason: "orders are being moved"}, &events.Paused{Behavior: "archive"}) {
		ev := j.ofRecord(body)
		ev.Origin = origin
		j.addEvent(ev)
	}
	j.seal(time.Second)
	golden(t, "records", j.state)
}

func TestGolden_SchedulesAreStoredAsEver(t *testing.T) {
	j := newJournal(t)
	add := func(bodies ...events.Body) {
		for _, body := range bodies {
			j.addEvent(j.ofRecord(body))
		}
	}
	first, second := j.now.Add(time.Hour), j.now.Add(2*time.Hour)
	plan := nightly
	plan.Misfire, plan.Jitter, plan.Start, plan.End, plan.PauseOnFailure = events.MisfireAll, 500, j.now, j.now.Add(48*time.Hour), true
	run := events.TaskID("nightly/tick:" + strconv.FormatInt(int64(first), 10))
	add(
		&events.ScheduleSet{Plan: plan, Params: events.JSON([]byte(`{"table":"orders"}`)), Next: first, Offset: 3600, Code: "5f0c"},
		&events.Ticked{Decision: events.TickCreated, From: first, To: first, Run: run, Next: second, ToOffset: 3600, NextOffset: 7200},
	)
	j.add(run, &events.Created{Behavior: "work", Policy: plan.Policy, NotBefore: j.now, Ties: events.Ties{Schedule: "nightly", By: "ada"}})
	add(
		&events.BackfillSet{From: 1000, To: 9000, Ticks: 3},
		&events.SchedulePaused{Reason: "orders are being moved", Failed: run},
	)
	j.seal(time.Second)
	golden(t, "schedules", j.state)
}

func TestGolden_SchedulesWithUUIDsAndWithoutTicksAreStoredAsEver(t *testing.T) {
	j := newJournal(t)
	first, second := j.now.Add(time.Hour), j.now.Add(2*time.Hour)
	named, idle := nightly, nightly
	named.Names, idle.Cron = events.NamesByUUID, ""
	set, never := &events.ScheduleSet{Plan: named, Next: first}, &events.ScheduleSet{Plan: idle}
	j.addEvent(j.ofRecord(set.Recorded("")))
	for i, of := range []events.RunOrigin{events.RunOfTick, events.RunByHand, events.RunOfFill} {
		id := events.TaskID("nightly/813fd1d0-e9cc-5537-9127-b1b5cb6e323" + strconv.Itoa(i))
		if of == events.RunOfTick {
			j.addEvent(j.ofRecord(&events.Ticked{Decision: events.TickCreated, From: first, To: first, Run: id, Next: second}))
		}
		j.add(id, &events.Created{Behavior: "work", Policy: named.Policy, NotBefore: j.now, Ties: events.Ties{Schedule: "nightly", Run: of}})
	}
	j.addEvent(events.Event{Task: events.ScheduleRecord("never"), Seq: 1, Body: never.Recorded("")})
	j.seal(time.Second)
	golden(t, "schedules-uuids", j.state)
}

// A snapshot of before schedules kept the beginnings of runs and pauses is read.
func TestGolden_SchedulesOfBeforeAreRead(t *testing.T) {
	s := restore(t, [][]byte{stored(t, "schedules-before.golden")})
	of := schedules.Of(s).Schedule("nightly")
	if of == nil || of.Paused == nil || of.Fill == nil || of.Active() != 1 || of.BusyFrom != 0 || of.PausedFrom != 0 {
		t.Errorf("read as %+v", of)
	}
}

func TestGolden_ItemsAreStoredAsEver(t *testing.T) {
	j := newJournal(t)
	add := func(store string, lineage, seq uint64, prev events.Ref, request string, body events.Body) events.Ref {
		at := events.RefOf(j.state.Number+1, len(j.entry.Entry.Events))
		j.addEvent(events.Event{Task: events.StoreItem(store, lineage), Seq: seq, Prev: prev, RequestID: request, Body: body})
		return at
	}
	added := add("crawl", 1, 1, 0, "7/first#aaaaaaaaaaaaaaaa", &events.ItemAdded{ID: 1, Group: "pages", At: j.now, Owner: 7, Data: events.Bytes([]byte("a\xff"))})
	add("crawl", 2, 1, 0, "", &events.ItemAdded{ID: 2, Group: "done", At: j.now, Owner: 7, Data: events.Bytes(nil)})
	add("other", 1, 1, 0, "", &events.ItemAdded{ID: 1, Group: "pages", At: j.now, Owner: 8, Data: events.Bytes(nil)})
	add("crawl", 1, 2, added, "9/claim#bbbbbbbbbbbbbbbb", &events.ItemReplaced{From: 1, To: 3, At: j.now.Add(time.Minute), Owner: 9})
	j.seal(time.Second)
	golden(t, "items", j.state)
}

// golden checks that a shard is stored as the file says, that the file is read as the shard, and what the readable form
// beside it says.
func golden(t *testing.T, name string, s *projection.Shard) {
	parts := write(s)
	if len(parts) != 1 {
		t.Fatalf("%d parts, want 1", len(parts))
	}
	var lines bytes.Buffer
	for b := parts[0]; len(b) > 0; b = b[min(32, len(b)):] {
		fmt.Fprintf(&lines, "%x\n", b[:min(32, len(b))])
	}
	pinned(t, name+".golden", lines.Bytes())
	pinned(t, name+".txt", []byte(render(generic(t, parts[0]))))

	wantSame(t, whole(restore(t, [][]byte{stored(t, name+".golden")}), s.Time), whole(s, s.Time), name+".golden is read as another state")
}

// stored returns what a golden file has.
func stored(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	data, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// render is what another library reads, each row on a line.
func render(top []any) string {
	var b strings.Builder
	for at, value := range top {
		if at != inSections {
			fmt.Fprintln(&b, readable(value))
			continue
		}
		for _, section := range value.([]any) {
			fmt.Fprintln(&b, "   ", section.([]any)[0])
			for _, row := range section.([]any)[1].([]any) {
				fmt.Fprintln(&b, "       ", readable(row))
			}
		}
	}
	return b.String()
}

func readable(v any) string {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = readable(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []byte:
		return fmt.Sprintf("0x%x", v)
	case nil:
		return "nil"
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// generic decodes msgpack without knowing what it holds.
func generic(t tb, b []byte) []any {
	t.Helper()
	var v []any
	if err := msgpack.Unmarshal(b, &v); err != nil {
		t.Fatalf("another library cannot read the part: %v", err)
	}
	return v
}

// resummed replaces what stands for the sum of a part by the sum of what is before.
func resummed(b []byte) []byte {
	if len(b) < 5 {
		return b
	}
	content := bytes.Clone(b[:len(b)-5])
	sum := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	return append(content, 0xce, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

// encoded is the part of values that another library writes, with the right sum.
func encoded(t tb, top []any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := msgpack.NewEncoder(&b)
	enc.UseCompactInts(true)
	if err := enc.Encode(top); err != nil {
		t.Fatalf("%v", err)
	}
	return resummed(b.Bytes())
}

// The places of values in a part, as Snapshot describes it.
const inVersion, inShard, inEntry, inHash, inTime, inCounts, inPart, inSections = 0, 1, 2, 3, 4, 5, 6, 7

// named returns the pair of a name in an array of them.
func named(t tb, top []any, in int, name string) []any {
	t.Helper()
	for _, pair := range top[in].([]any) {
		if pair.([]any)[0] == name {
			return pair.([]any)
		}
	}
	t.Fatalf("no section %s", name)
	return nil
}

func TestRestorer_RefusesWhatNoShardCouldHaveWritten(t *testing.T) {
	t.Parallel()
	part := write(sampleShard(t))[0]
	rows := func(top []any, of string) []any { return named(t, top, inSections, of)[1].([]any) }
	task := func(top []any, id string) []any {
		for _, row := range rows(top, "tasks") {
			if row.([]any)[0] == id {
				return row.([]any)
			}
		}
		t.Fatalf("no task %s", id)
		return nil
	}
	run := func(top []any, id string) []any { return task(top, id)[13].([]any) }
	wait := func(top []any, id string) []any { return task(top, id)[14].([]any) }
	flag := func(top []any, id string, more uint64) { // with further flags
		flags, err := strconv.ParseUint(fmt.Sprint(task(top, id)[3]), 10, 8)
		if err != nil {
			t.Fatal(err)
		}
		task(top, id)[3] = flags | more
	}
	rerow := func(top []any, id string, wait ...any) { // with another wait, or none
		for i, row := range rows(top, "tasks") {
			if row.([]any)[0] == id {
				rows(top, "tasks")[i] = append(row.([]any)[:14], wait...)
			}
		}
	}
	count := func(top []any, of string, n uint64) { named(t, top, inCounts, of)[1] = n }
	for name, c := range map[string]struct {
		want   string
		change func(top []any)
	}{
		"another version":            {"snapshot version 4", func(top []any) { top[inVersion] = projection.SnapshotVersion + 1 }},
		"a shard beyond 16 bits":     {"it is part 0 of shard 65539", func(top []any) { top[inShard] = 1<<16 | shard }},
		"a part in the middle":       {"it is part 1 of shard 3", func(top []any) { top[inPart] = 1 }},
		"a short hash":               {"hash of 31 bytes", func(top []any) { top[inHash] = make([]byte, 31) }},
		"a long hash":                {"hash of 33 bytes", func(top []any) { top[inHash] = make([]byte, 33) }},
		"a text for a number":        {"number expected, found 0xa4", func(top []any) { top[inTime] = "noon" }},
		"fewer tasks than counted":   {`missing, after 7 rows of 8 in section "tasks"`, func(top []any) { count(top, "tasks", 8) }},
		"more tasks than counted":    {`row 7 of 6 in section "tasks"`, func(top []any) { count(top, "tasks", 6) }},
		"a count beyond all measure": {"missing, after 7 rows of 9223372036854775808", func(top []any) { count(top, "tasks", 1<<63) }},
		"fewer senders than counted": {`missing, after 2 rows of 3 in section "senders"`, func(top []any) { count(top, "senders", 3) }},
		"more senders than counted":  {`row 2 of 1 in section "senders"`, func(top []any) { count(top, "senders", 1) }},
		"tasks that are not counted": {`row 7 of 0 in section "tasks"`, func(top []any) { top[inCounts] = top[inCounts].([]any)[1:] }},
		"a count of nothing":         {`0 rows of section "senders" counted`, func(top []any) { count(top, "senders", 0) }},
		"a count twice":              {`section "senders" in the wrong place`, func(top []any) { top[inCounts] = append(top[inCounts].([]any), []any{"senders", 2}) }},
		"a count of kinds":           {`7 rows of section "kinds" counted`, func(top []any) { named(t, top, inCounts, "tasks")[0] = "kinds" }},
		"a section twice":            {`section "tasks" in the wrong place`, func(top []any) { top[inSections] = append(top[inSections].([]any), top[inSections].([]any)[2]) }},
		"sections in another order":  {`section "tasks" in the wrong place`, func(top []any) { slices.Reverse(top[inSections].([]any)) }},
		"a section without rows":     {`section "senders" without a row`, func(top []any) { named(t, top, inSections, "senders")[1] = []any{} }},
		"a section without a name":   {"string expected, found 0x07", func(top []any) { named(t, top, inSections, "senders")[0] = 7 }},
		"a record of no events": {"settings of no events", func(top []any) {
			top[inCounts] = append(top[inCounts].([]any), []any{"settings", 1})
			top[inSections] = append(top[inSections].([]any), []any{"settings", []any{[]any{0, 0, []any{}}}})
		}},
		"a record twice": {"settings is there twice", func(top []any) {
			paused := []any{1, 1 << 20, []any{[]any{"work", "", "", 1}}}
			top[inCounts] = append(top[inCounts].([]any), []any{"settings", 2})
			top[inSections] = append(top[inSections].([]any), []any{"settings", []any{paused, paused}})
		}},
		"a gap behind the last entry": {"a gap between entries behind the last one", func(top []any) {
			top[inCounts] = slices.Insert(top[inCounts].([]any), 1, any([]any{"gaps", 1}))
			top[inSections] = slices.Insert(top[inSections].([]any), 3, any([]any{"gaps", []any{[]any{int64(start) + 3_600_000, 1}}}))
		}},
		"an item of no group": {"item 1 of no group", func(top []any) {
			top[inCounts] = append(top[inCounts].([]any), []any{"items", 1})
			top[inSections] = append(top[inSections].([]any), []any{"items", []any{[]any{1, 1, 1, 1, 1, 0, 7, 0, []byte{2}}}})
		}},
		"a store of an entry to come": {"a store of event", func(top []any) {
			top[inCounts] = append(top[inCounts].([]any), []any{"stores", 1})
			top[inSections] = append(top[inSections].([]any), []any{"stores", []any{[]any{1 << 40, "crawl", 1, 0, 0}}})
		}},
		"an entry before its tasks":    {"begins or ends outside of the journal", func(top []any) { top[inEntry] = 1 }},
		"a kind without a behavior":    {"0 bytes, want 1 to 48", func(top []any) { rows(top, "kinds")[0].([]any)[0] = "" }},
		"a kind with a strange policy": {"retain count 1000001", func(top []any) { rows(top, "kinds")[0].([]any)[1].([]any)[9] = 1_000_001 }},
		"a kind that no task has": {"nothing is of kind idle", func(top []any) {
			kinds := named(t, top, inSections, "kinds")
			kinds[1] = append(rows(top, "kinds"), []any{"idle", rows(top, "kinds")[0].([]any)[1]})
		}},
		"a kind of a creator without a name": {"kind of 3 values", func(top []any) {
			kinds := rows(top, "kinds")
			kinds[0] = append(kinds[0].([]any)[:2], "")
		}},
		"a kind of two creators": {"array of 3 values expected, found 4", func(top []any) {
			kinds := rows(top, "kinds")
			kinds[0] = append(kinds[0].([]any)[:2], "ada", "grace")
		}},
		"a node without a name":                        {"a node without a name", func(top []any) { rows(top, "nodes")[0] = "" }},
		"a run on an unknown node":                     {"node 1 of 1", func(top []any) { run(top, "runs")[4] = 1 }},
		"a run on no node":                             {"an attempt on no node", func(top []any) { run(top, "will/retry")[4] = nil }},
		"a cause of a task that runs":                  {"waits without a cause, or has one and does not", func(top []any) { wait(top, "runs")[0] = int(events.KindLost) }},
		"a wait of a task that runs":                   {"waits since another time", func(top []any) { wait(top, "runs")[1] = int64(start) }},
		"a wait since another time":                    {"waits since another time", func(top []any) { wait(top, "is/lost")[1] = int64(start) - 1 }},
		"a wait since never":                           {"waits since another time", func(top []any) { wait(top, "is/lost")[1] = 0 }},
		"a wait without a cause":                       {"waits without a cause, or has one and does not", func(top []any) { wait(top, "is/lost")[0] = 0 }},
		"a wait because of a start":                    {"waits because of Started", func(top []any) { wait(top, "is/lost")[0] = int(events.KindStarted) }},
		"a cause beyond 8 bits":                        {"number 263 exceeds 255", func(top []any) { wait(top, "is/lost")[0] = 256 + int(events.KindLost) }},
		"lost without a wait":                          {"waits without a cause, or has one and does not", func(top []any) { rerow(top, "is/lost") }},
		"a wait that tells nothing":                    {"task of 15 values, the last ones are empty", func(top []any) { rerow(top, "failed", []any{0, 0, 0, "", "", "", ""}) }},
		"a suspension without a time":                  {"suspended without a time", func(top []any) { wait(top, "waits")[2] = 0 }},
		"a suspension of a task that is not suspended": {"suspended without a time", func(top []any) { task(top, "waits")[3] = 0 }},
		"a suspension by somebody of a task that is not suspended": {"not suspended, and yet by somebody", func(top []any) {
			wait(top, "is/lost")[5] = "ada"
		}},
		"a suspension for a reason of a task that is not suspended": {"not suspended, and yet by somebody", func(top []any) {
			wait(top, "is/lost")[6] = "a migration"
		}},
		"a suspension before the task": {"suspended without a time, or before it was", func(top []any) { wait(top, "waits")[2] = int64(start) - 1 }},
		"requests of which there are none": {"task of 13 values, the last ones are empty", func(top []any) {
			for i, row := range rows(top, "tasks") {
				if row.([]any)[0] == "later" {
					rows(top, "tasks")[i] = append(row.([]any), []any{})
				}
			}
		}},
		"a task of too few values": {"task of 11 values", func(top []any) {
			for i, row := range rows(top, "tasks") {
				if row.([]any)[0] == "later" {
					rows(top, "tasks")[i] = row.([]any)[:11]
				}
			}
		}},
		"a task of an unknown kind":       {"kind 2 of 2", func(top []any) { task(top, "waits")[1] = 2 }},
		"a task without an id":            {"task id: empty", func(top []any) { task(top, "waits")[0] = "" }},
		"a task twice":                    {`task "runs" is there twice`, func(top []any) { task(top, "waits")[0] = "runs" }},
		"two tasks of one event":          {"were created by one event", func(top []any) { task(top, "runs")[6] = task(top, "waits")[6] }},
		"tasks of times in another order": {"in another order than their times", func(top []any) { task(top, "later")[7] = int64(start) - 1 }},
		"a task of no status":             {"no status", func(top []any) { task(top, "runs")[2] = 0 }},
		"a task of an unknown status":     {"number 5 exceeds 4", func(top []any) { task(top, "runs")[2] = 5 }},
		"an unknown flag":                 {"number 512 exceeds 511", func(top []any) { task(top, "runs")[3] = 512 }},
		"a sequence of 0":                 {"begins or ends outside of the journal", func(top []any) { task(top, "runs")[5] = 0 }},
		"no beginning":                    {"begins or ends outside of the journal", func(top []any) { task(top, "waits")[6] = 0 }},
		"an end before the beginning":     {"begins or ends outside of the journal", func(top []any) { task(top, "waits")[8] = 1 << 19 }},
		"parameters from the future":      {"an event after its last", func(top []any) { task(top, "waits")[11] = uint64(1 << 62) }},
		"parameters from before":          {"or before its first one", func(top []any) { task(top, "waits")[11] = 1 << 19 }},
		"a start from the future":         {"an event after its last", func(top []any) { run(top, "runs")[7] = uint64(1 << 62) }},
		"an outcome from the future":      {"an event after its last", func(top []any) { run(top, "failed")[9] = uint64(1 << 62) }},
		"too many requests": {fmt.Sprint(requests.Max+1, " requests"), func(top []any) {
			task(top, "waits")[12] = slices.Repeat(task(top, "waits")[12].([]any), requests.Max+1)
		}},
		"a request of a run beyond 32 bits": {"run 4294967296", func(top []any) { task(top, "waits")[12].([]any)[0].([]any)[1] = 1 << 32 }},
		"CREATED with a run":                {"CREATED task with a run of 14 values", func(top []any) { task(top, "waits")[13] = task(top, "runs")[13] }},
		"CREATED without a time":            {"CREATED without a time", func(top []any) { task(top, "waits")[9] = 0 }},
		"CREATED and cancelled":             {"cancelled without being RUNNING", func(top []any) { flag(top, "waits", 2) }},
		"RUNNING without a run":             {"RUNNING task with a run of 0 values", func(top []any) { task(top, "runs")[13] = []any{} }},
		"RUNNING with a cut run":            {"RUNNING task with a run of 13 values", func(top []any) { task(top, "runs")[13] = run(top, "runs")[:13] }},
		"RUNNING with a longer run":         {"array of 14 values expected, found 15", func(top []any) { task(top, "runs")[13] = append(run(top, "runs"), 1) }},
		"RUNNING without an attempt":        {"a node without an attempt", func(top []any) { run(top, "runs")[0] = 0 }},
		"RUNNING without an attempt or a node": {"RUNNING without an attempt or a start", func(top []any) {
			run(top, "is/lost")[0], run(top, "is/lost")[4] = 0, nil
		}},
		"RUNNING without a start":        {"RUNNING without an attempt or a start", func(top []any) { run(top, "runs")[7] = 0 }},
		"RUNNING on a node and due":      {"waits without a cause, or has one and does not", func(top []any) { task(top, "runs")[9] = 1 }},
		"RUNNING nowhere and never":      {"waits without a cause, or has one and does not", func(top []any) { task(top, "is/lost")[9] = 0 }},
		"RUNNING with a result":          {"a result without SUCCESS", func(top []any) { run(top, "runs")[11] = []byte{1} }},
		"RUNNING with a result left out": {"a result without SUCCESS", func(top []any) { flag(top, "runs", 32) }},
		"RUNNING with an error":          {"an error without FAILURE", func(top []any) { run(top, "runs")[12] = run(top, "failed")[12] }},
		"RUNNING with an error left out": {"an error without FAILURE", func(top []any) { flag(top, "runs", 64) }},
		"a run promised and over":        {"the further run of a run that is over", func(top []any) { flag(top, "runs", 4|8) }},
		"two errors":                     {"2 errors", func(top []any) { run(top, "failed")[12] = make([]any, 2) }},
		"FAILURE without an error":       {"an error without FAILURE, or none with it", func(top []any) { run(top, "failed")[12] = []any{} }},
		"FAILURE without an outcome":     {"an end without an outcome", func(top []any) { run(top, "failed")[9] = 0 }},
		"SUCCESS without an outcome":     {"an end without an outcome", func(top []any) { run(top, "succeeded")[9] = 0 }},
		"a finished task with a run":     {"holds on to its run", func(top []any) { task(top, "failed")[3] = 16 }},
		"a finished task's parameters":   {"holds on to its run", func(top []any) { task(top, "failed")[10] = []byte{1, '1'} }},
		"a finished task's large result": {"holds on to its run", func(top []any) { run(top, "succeeded")[11] = make([]byte, projection.MaxKeptResult+1) }},
		"a finished task's large error": {"holds on to its run", func(top []any) {
			run(top, "failed")[12].([]any)[0].([]any)[1] = strings.Repeat("m", projection.MaxKeptError+1)
		}},
		"half a progress":        {"progress of 1 values", func(top []any) { run(top, "runs")[13] = []any{1} }},
		"a count beyond 32 bits": {"number 4294967296 exceeds 4294967295", func(top []any) { run(top, "runs")[2] = uint64(1 << 32) }},
		"a sender twice":         {`sender "c-9f8e", lane 2, is there twice`, func(top []any) { copy(rows(top, "senders")[1].([]any), rows(top, "senders")[0].([]any)[:2]) }},
		"a lane beyond 8 bits":   {"number 256 exceeds 255", func(top []any) { rows(top, "senders")[0].([]any)[1] = 256 }},
	} {
		top := generic(t, part)
		c.change(top)
		_, err := restored([][]byte{encoded(t, top)})
		if !errors.Is(err, projection.ErrSnapshot) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want ErrSnapshot and %q", name, err, c.want)
		}
	}
	if _, err := restored([][]byte{encoded(t, generic(t, part))}); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	for want, part := range map[string][]byte{
		"the sum is not that of the content":     part[:len(part)-1],
		"array of 8 values":                      encoded(t, slices.Delete(generic(t, part), inPart, inPart+1)),
		"5 bytes after the value":                resummed(make([]byte, 6)),
		"snapshot version":                       resummed([]byte{0x91, 0, 0, 0, 0, 0}),
		"2097152 bytes exceed the limit of 1048": resummed(make([]byte, 2<<20)),
	} {
		if _, err := restored([][]byte{part}); !errors.Is(err, projection.ErrSnapshot) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want ErrSnapshot and %q", len(part), err, want)
		}
	}
}

// longer lets the first row of a section that has so many values have one more.
func longer(t tb, top []any, section string, values int) []any {
	t.Helper()
	rows := named(t, top, inSections, section)[1].([]any)
	for i, row := range rows {
		if len(row.([]any)) == values {
			rows[i] = append(row.([]any), "tail")
			return top
		}
	}
	t.Fatalf("no row of %d values in section %s", values, section)
	return nil
}

// What stands in a part that another build wrote may be more than this one can fold: whoever reads it must be told, and
// not go on from an earlier state as if the part were damaged.
func TestRestorer_RefusesAnotherVersionAndAnUnknownSectionByName(t *testing.T) {
	t.Parallel()
	part := write(sampleShard(t))[0]
	first := []any{1, shard, 2, make([]byte, 32), start, 7, 2, 0, []any{}, []any{}, []any{}, uint32(1 << 31)}
	for want, change := range map[string]func(top []any) []any{
		"snapshot version 1, this program reads 3": func([]any) []any { return first },
		"snapshot version 4, this program reads 3": func(top []any) []any { return append([]any{4}, top[1:]...) },
		`section "plans" of a snapshot, which this program does not know`: func(top []any) []any {
			top[inSections] = append(top[inSections].([]any), []any{"plans", []any{[]any{1}}})
			return top
		},
		`section "forecasts" of a snapshot, which this program does not know`: func(top []any) []any {
			top[inCounts] = append(top[inCounts].([]any), []any{"forecasts", 3})
			return top
		},
		"array of 3 values expected, found 4": func(top []any) []any { return longer(t, top, "kinds", 3) },
		"array of 5 values expected, found 6": func(top []any) []any { return longer(t, top, "senders", 5) },
	} {
		_, err := restored([][]byte{encoded(t, change(generic(t, part)))})
		if !errors.Is(err, projection.ErrSnapshot) || !errors.Is(err, events.ErrVersion) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	described := generic(t, write(sampleDescribed(t))[0])
	_, err := restored([][]byte{encoded(t, longer(t, described, "tasks", 16))})
	if !errors.Is(err, events.ErrVersion) || !strings.Contains(err.Error(), "array of 16 values expected, found 17") {
		t.Errorf("a longer task: %v", err)
	}
	damaged := bytes.Clone(part)
	damaged[len(damaged)/2] ^= 1
	if _, err := restored([][]byte{damaged}); errors.Is(err, events.ErrVersion) {
		t.Errorf("damage is taken for another version: %v", err)
	}
}

// FuzzRestorer restores any bytes with the right sum: nothing may panic, and what is restored can be stored and
// restored.
func FuzzRestorer(f *testing.F) {
	for _, parts := range [][][]byte{write(sampleShard(f)), write(projection.NewShard(shard)), write(delayed(f, 3).state)} {
		f.Add(parts[0], []byte(nil))
		f.Add(parts[0], parts[0])
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		r := projection.NewRestorer(shard)
		for _, part := range [][]byte{first, second} {
			if part == nil {
				continue
			}
			if err := r.Add(resummed(part)); err != nil && !errors.Is(err, projection.ErrSnapshot) {
				t.Fatalf("%v does not wrap ErrSnapshot", err)
			}
		}
		s, err := r.Done()
		if err != nil {
			if !errors.Is(err, projection.ErrSnapshot) {
				t.Fatalf("%v does not wrap ErrSnapshot", err)
			}
			return
		}
		again := restore(t, write(s))
		wantSame(t, whole(again, s.Time), whole(s, s.Time), "restored again")
		s.MakeDue(s.Time + 1_000_000)
		s.Seal(&events.Entry{Number: s.Number + 1, Time: s.Time + 1_000_000})
	})
}

func TestRestorer_BombsCostLittle(t *testing.T) {
	testkit.CheckBombs(t, write(sampleShard(t))[0], func(b []byte) error {
		_, err := restored([][]byte{resummed(b)})
		return err
	})
}
