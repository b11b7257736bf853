package natsbus_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
)

var update = flag.Bool("update", false, "write the golden file if it is missing; an existing one is never changed")

const goldenSegment = "testdata/segment.golden"

// goldenEntries are two entries whose own form does not change with what tasks may hold.
func goldenEntries(t *testing.T) (entries []store.Record) {
	t.Helper()
	var b events.Builder
	for number := uint64(41); number <= 42; number++ {
		b.Reset(events.Entry{Shard: 3, Number: number, Epoch: 7, Owner: "owner", Time: 1_000_000})
		for _, task := range []events.TaskID{"invoices/7", events.TaskID(fmt.Sprint("task-", number))} {
			b.Add(events.Event{Task: task, Seq: number, Prev: 9, Body: &events.Suspended{}})
		}
		data, err := b.Seal()
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, store.Record{Head: store.Head{Number: number, Revision: int64(1000 + number)}, Data: data})
	}
	return entries
}

// readable shows a message as lines of headers, an empty one, and the body in hexadecimal.
func readable(m *nats.Msg) []byte {
	var text bytes.Buffer
	for _, name := range []string{"Taskledger-First", "Taskledger-Last", "Taskledger-Tasks"} {
		fmt.Fprintf(&text, "%s: %s\n", name, m.Header.Get(name))
	}
	text.WriteByte('\n')
	for line := range slices.Chunk(m.Data, 40) {
		fmt.Fprintf(&text, "%x\n", line)
	}
	return text.Bytes()
}

func parse(t testing.TB, text []byte) (nats.Header, []byte) {
	t.Helper()
	header, body := nats.Header{}, ""
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, value, found := strings.Cut(lines.Text(), ": "); found {
			header.Set(name, value)
		} else {
			body += lines.Text()
		}
	}
	data, err := hex.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	return header, data
}

func TestSegment_IsStoredAsEver(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	a, js := openArchive(t, s), byHand(t, s.URL)
	head := archive(t, a, 3, store.ArchiveHead{Entry: 40}, goldenEntries(t))
	got := messageAt(t, js, head.Sequence)
	text, err := os.ReadFile(goldenSegment)
	switch {
	case errors.Is(err, fs.ErrNotExist) && *update:
		if err := os.WriteFile(goldenSegment, readable(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	case err != nil:
		t.Fatalf("%v; -update writes it", err)
	}
	want := &nats.Msg{}
	want.Header, want.Data = parse(t, text)
	want.Data, got.Data = unpack(t, want.Data), unpack(t, got.Data) // compressors differ
	if !bytes.Equal(readable(got), readable(want)) {
		t.Errorf("%s holds\n%s\nthis version writes\n%s\nThe stored form must not change.", goldenSegment, readable(want), readable(got))
	}
}

func unpack(t testing.TB, data []byte) []byte {
	t.Helper()
	body, err := s2.Decode(nil, data)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestSegment_ThatWouldGrowTooLargeIsDamaged(t *testing.T) { // alone: it measures what is allocated
	header := nats.Header{"Taskledger-First": {"1"}, "Taskledger-Last": {"1"}}
	bomb := s2.Encode(nil, make([]byte, 64<<20))
	if len(bomb) > 1<<20 {
		t.Fatalf("%d bytes are no bomb", len(bomb))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := natsbus.DecodeSegment(3, header, bomb); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("error %v", err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 { // others allocate, too
		t.Errorf("%d bytes were allocated", grown)
	}
}

// What is wrong is told of the first entry that it befell; the ones before are sound.
func TestSegment_DamageIsNamedWhereItIs(t *testing.T) {
	t.Parallel()
	whole := archivetest.Entries(t, 3, 7, 4)
	header := nats.Header{"Taskledger-First": {"7"}, "Taskledger-Last": {"10"}}
	for name, c := range map[string]struct {
		entries []store.Record
		sound   int
		missing bool
		says    string
	}{
		"none":        {whole, 4, false, ""},
		"removed":     {slices.Concat(whole[:1], whole[2:]), 1, true, "entry 9 stands where 8 is due"},
		"swapped":     {[]store.Record{whole[0], whole[2], whole[1], whole[3]}, 1, false, "entry 9 stands where 8 is due, which stands behind it"},
		"cut off":     {whole[:2], 2, true, "entry 9 is not there"},
		"added":       {slices.Concat(whole, archivetest.Entries(t, 3, 11, 1)), 4, false, "entry 11 is none of them"},
		"one twice":   {slices.Concat(whole[:2], whole[1:]), 2, false, "entry 8 stands where 9 is due, which stands behind it"},
		"all removed": {nil, 0, true, "entry 7 is not there"},
	} {
		got, err := natsbus.DecodeSegment(3, header, s2.Encode(nil, natsbus.Pack(3, c.entries)))
		if (err != nil) != (c.says != "") || err != nil && (!errors.Is(err, events.ErrDamaged) || errors.Is(err, store.ErrTrimmed) != c.missing ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		archivetest.Compare(t, got, whole[:c.sound])
	}
}

func TestSegment_StoredOnceIsReadForEver(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(goldenSegment)
	if err != nil {
		t.Fatal(err)
	}
	header, data := parse(t, text)
	got, err := natsbus.DecodeSegment(3, header, data)
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, goldenEntries(t))
	filter := natsbus.ParseFilter(header.Get("Taskledger-Tasks"))
	for task, want := range map[events.TaskID]bool{"invoices/7": true, "task-41": true, "task-42": true, "task-43": false} {
		if got := filter(task); got != want {
			t.Errorf("may hold %s: %t, want %t", task, got, want)
		}
	}
}

func FuzzSegment_HostileBytesNeverPanic(f *testing.F) {
	text, err := os.ReadFile(goldenSegment)
	if err != nil {
		f.Fatal(err)
	}
	header, data := parse(f, text)
	f.Add(header.Get("Taskledger-First"), header.Get("Taskledger-Last"), header.Get("Taskledger-Tasks"), data)
	f.Add("1", "18446744073709551615", "", s2.Encode(nil, []byte{0x93, 1, 3, 0xdd, 0, 0, 0, 1}))
	f.Fuzz(func(t *testing.T, first, last, tasks string, data []byte) {
		header := nats.Header{"Taskledger-First": {first}, "Taskledger-Last": {last}}
		natsbus.ParseFilter(tasks)("task")
		entries, err := natsbus.DecodeSegment(3, header, data)
		if err == nil && len(entries) == 0 || err != nil && !errors.Is(err, events.ErrDamaged) {
			t.Errorf("%d entries, %v", len(entries), err)
		}
	})
}
