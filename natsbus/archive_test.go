package natsbus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
)

const archiveStream = "TASKLEDGER_ARCHIVE"

func TestArchive_KeepsItsContract(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) store.Archive { return openArchive(t, testcluster.StartJetStream(t)) })
}

// Where servers sync always a segment is confirmed as soon as it is archived, and not read from its entries again.
func TestArchive_ConfirmsAtOnceNothingButWhatItArchived(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	a := archiveOf(t, natsbus.Config{URLs: []string{s.URL}}, natsbus.ArchiveConfig{DurableAfter: -1})
	one := archivetest.Entries(t, 0, 1, 1)
	head := archive(t, a, 0, store.ArchiveHead{}, one)
	other := []store.Record{archivetest.Entry(t, 0, 1, 20, "other")}
	if err := a.Confirm(t.Context(), 0, head, other); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another entry: confirmed with %v", err)
	}
	head = archive(t, a, 0, head, archivetest.Entries(t, 0, 2, 1))
	for _, when := range []string{"at once", "again"} {
		if err := a.Confirm(t.Context(), 0, head, archivetest.Entries(t, 0, 2, 1)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
}

func openArchive(t testing.TB, s *testcluster.NATS) *natsbus.Archive {
	t.Helper()
	return archiveOf(t, natsbus.Config{URLs: []string{s.URL}}, natsbus.ArchiveConfig{})
}

func archiveOf(t testing.TB, cfg natsbus.Config, how natsbus.ArchiveConfig) *natsbus.Archive {
	t.Helper()
	cfg.Key = clusterKey
	bus, err := natsbus.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bus.Close() })
	a, err := bus.Archive(how)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func archive(t testing.TB, a *natsbus.Archive, shard int, after store.ArchiveHead, entries []store.Record) store.ArchiveHead {
	t.Helper()
	head, err := a.Archive(t.Context(), shard, after, entries)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// byHand connects a client that knows JetStream and nothing of segments.
func byHand(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(timeout))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func messageAt(t testing.TB, js jetstream.JetStream, sequence uint64) *nats.Msg {
	t.Helper()
	stream, err := js.Stream(t.Context(), archiveStream)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), sequence)
	if err != nil {
		t.Fatal(err)
	}
	return &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}
}

// forge puts a message on the subject of shard 0, as anybody may who has the rights of a node.
func forge(t testing.TB, js jetstream.JetStream, header nats.Header, data []byte) {
	t.Helper()
	for name := range header {
		if strings.HasPrefix(name, "Nats-") {
			header.Del(name)
		}
	}
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "taskledger.archive.0", Header: header, Data: data}); err != nil {
		t.Fatal(err)
	}
}

func TestArchive_SurvivesARestartOfTheServerAndGoesOn(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	a := openArchive(t, s)
	one, two := archivetest.Entries(t, 0, 1, 3), archivetest.Entries(t, 0, 4, 3)
	head := archive(t, a, 0, store.ArchiveHead{}, one)
	s.Stop()
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := a.Archive(short, 0, head, two); !errors.Is(err, nats.ErrDisconnected) {
		t.Errorf("archived without a server: %v", err)
	}
	s.Start()
	if got, err := a.Head(t.Context(), 0); got != head || err != nil {
		t.Errorf("head after the restart %+v, %v; want %+v", got, err, head)
	}
	archive(t, a, 0, head, two)
	got, err := archivetest.Collect(a.ReadArchive(t.Context(), 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, append(one, two...))
}

func TestArchive_EveryCallEndsWithoutAServer(t *testing.T) {
	t.Parallel()
	a := archiveOf(t, natsbus.Config{URLs: []string{"nats://127.0.0.1:1"}}, natsbus.ArchiveConfig{})
	var calling sync.WaitGroup
	one := archivetest.Entries(t, 0, 1, 1)
	for name, call := range map[string]func(context.Context) error{
		"head":    func(ctx context.Context) error { _, err := a.Head(ctx, 0); return err },
		"archive": func(ctx context.Context) error { _, err := a.Archive(ctx, 0, store.ArchiveHead{}, one); return err },
		"confirm": func(ctx context.Context) error {
			return a.Confirm(ctx, 0, store.ArchiveHead{Entry: 1, Sequence: 1}, one)
		},
		"read": func(ctx context.Context) error {
			_, err := archivetest.Collect(a.ReadArchive(ctx, 0, 1))
			return err
		},
		"find": func(ctx context.Context) error {
			_, err := archivetest.Collect(a.FindArchived(ctx, 0, "t", math.MaxUint64))
			return err
		},
	} {
		calling.Go(func() {
			if err := call(t.Context()); !errors.Is(err, nats.ErrDisconnected) || !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "5s") {
				t.Errorf("%s without a server: %v", name, err)
			}
		})
	}
	calling.Wait()
}

// A request may meet the connection in the moment in which it breaks, before anybody was told.
func TestArchive_RequestOnAConnectionThatJustBrokeIsUnavailable(t *testing.T) {
	err := natsbus.Meaning(nats.ErrReconnectBufExceeded)
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, nats.ErrDisconnected) || !errors.Is(err, nats.ErrReconnectBufExceeded) {
		t.Errorf("got %v", err)
	}
}

// What was not sent is sent when the client knows of the broken connection, and has another one.
func TestArchive_RequestThatWasNotSentIsMadeAgain(t *testing.T) {
	t.Parallel()
	a := openArchive(t, testcluster.StartJetStream(t))
	tries := 0
	err := a.Request(t.Context(), func(context.Context) error {
		if tries++; tries < 3 {
			return nats.ErrReconnectBufExceeded
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
}

func TestArchive_WithoutJetStreamWritesFailAndReadsSayThatThereIsNone(t *testing.T) {
	t.Parallel()
	a := openArchive(t, testcluster.StartNATS(t))
	one := archivetest.Entries(t, 0, 1, 1)
	_, unwritten := a.Archive(t.Context(), 0, store.ArchiveHead{}, one)
	_, headless := a.Head(t.Context(), 0)
	unconfirmed := a.Confirm(t.Context(), 0, store.ArchiveHead{Entry: 1, Sequence: 1}, one)
	for _, err := range []error{unwritten, headless, unconfirmed} {
		if !errors.Is(err, natsbus.ErrNoJetStream) {
			t.Errorf("without JetStream: %v", err)
		}
	}
	for name, seq := range map[string]func() ([]store.Record, error){
		"read": func() ([]store.Record, error) { return archivetest.Collect(a.ReadArchive(t.Context(), 0, 1)) },
		"find": func() ([]store.Record, error) {
			return archivetest.Collect(a.FindArchived(t.Context(), 0, "t", math.MaxUint64))
		},
	} {
		if got, err := seq(); len(got) > 0 || !errors.Is(err, store.ErrNoArchive) || !errors.Is(err, natsbus.ErrNoJetStream) {
			t.Errorf("%s without JetStream: %d records, %v", name, len(got), err)
		}
	}
}

// A stream without segments of the shard is an archive that holds nothing; no stream is none.
func TestArchive_NoStreamIsNoArchive(t *testing.T) {
	t.Parallel()
	a := openArchive(t, testcluster.StartJetStream(t))
	read := func() (unread, unfound error) {
		_, unread = archivetest.Collect(a.ReadArchive(t.Context(), 0, 1))
		_, unfound = archivetest.Collect(a.FindArchived(t.Context(), 0, "t", math.MaxUint64))
		return unread, unfound
	}
	if unread, unfound := read(); !errors.Is(unread, store.ErrNoArchive) || !errors.Is(unfound, store.ErrNoArchive) {
		t.Errorf("without a stream: %v, %v", unread, unfound)
	}
	archive(t, a, 1, store.ArchiveHead{}, archivetest.Entries(t, 1, 1, 1))
	if unread, unfound := read(); unread != nil || unfound != nil {
		t.Errorf("with a stream: %v, %v", unread, unfound)
	}
}

func TestArchive_FullStoreSaysSoAndTakesMoreWhenThereIsSpace(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	s.Stop()
	s.MaxStore = 256 << 10
	s.Start()
	a := openArchive(t, s)
	var all []store.Record
	var head store.ArchiveHead
	var full error
	next := func() []store.Record {
		return []store.Record{archivetest.Entry(t, 0, head.Entry+1, 60<<10, archivetest.Task(head.Entry+1))}
	}
	for full == nil && len(all) < 100 {
		entries := next()
		now, err := a.Archive(t.Context(), 0, head, entries)
		if full = err; err == nil {
			head, all = now, append(all, entries...)
		}
	}
	if !errors.Is(full, store.ErrFull) || len(all) == 0 {
		t.Fatalf("after %d entries in a store of 256 KiB: %v", len(all), full)
	}
	s.Stop()
	s.MaxStore = 0
	s.Start()
	all = append(all, next()...)
	archive(t, a, 0, head, all[len(all)-1:])
	got, err := archivetest.Collect(a.ReadArchive(t.Context(), 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, all)
}

func TestArchive_MessagesByHandAreFound(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(good, foreign *nats.Msg) (nats.Header, []byte){
		"garbage":            func(_, _ *nats.Msg) (nats.Header, []byte) { return nil, []byte("garbage") },
		"no body":            func(good, _ *nats.Msg) (nats.Header, []byte) { return good.Header, nil },
		"the last one again": func(good, _ *nats.Msg) (nats.Header, []byte) { return good.Header, good.Data },
		"of another shard":   func(_, foreign *nats.Msg) (nats.Header, []byte) { return foreign.Header, foreign.Data },
		"a number that is left out": func(_, foreign *nats.Msg) (nats.Header, []byte) {
			body := bytes.Replace(unpack(t, foreign.Data), []byte{0x93, 4, 0xcd}, []byte{0x93, 5, 0xcd}, 1)
			return foreign.Header, ofShard(0, body)
		},
		"other numbers": func(good, _ *nats.Msg) (nats.Header, []byte) {
			good.Header.Set("Taskledger-First", "3")
			good.Header.Set("Taskledger-Last", "4")
			return good.Header, good.Data
		},
		"no entries": func(good, _ *nats.Msg) (nats.Header, []byte) {
			return good.Header, s2.Encode(nil, []byte{0x93, 1, 0, 0x90})
		},
		"more entries than bytes": func(good, _ *nats.Msg) (nats.Header, []byte) {
			return good.Header, s2.Encode(nil, []byte{0x93, 1, 0, 0xdd, 0xff, 0xff, 0xff, 0xff})
		},
		"huge numbers": func(good, _ *nats.Msg) (nats.Header, []byte) {
			good.Header.Set("Taskledger-Last", "18446744073709551615")
			return good.Header, good.Data
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testcluster.StartJetStream(t)
			a, js := openArchive(t, s), byHand(t, s.URL)
			one := archivetest.Entries(t, 0, 1, 2)
			head := archive(t, a, 0, store.ArchiveHead{}, one)
			other := archive(t, a, 1, store.ArchiveHead{Entry: 2}, archivetest.Entries(t, 1, 3, 2))
			header, data := alter(messageAt(t, js, head.Sequence), messageAt(t, js, other.Sequence))
			forge(t, js, header, data)
			got, err := archivetest.Collect(a.ReadArchive(t.Context(), 0, 1))
			if !errors.Is(err, events.ErrDamaged) || !strings.Contains(err.Error(), "shard 0") {
				t.Errorf("read a forged segment: %v", err)
			}
			if name == "a number that is left out" { // behind one that is sound
				got = got[:min(2, len(got))]
			}
			archivetest.Compare(t, got, one)
			if _, err := archivetest.Collect(a.FindArchived(t.Context(), 0, "task-1", math.MaxUint64)); header == nil && !errors.Is(err, events.ErrDamaged) {
				t.Errorf("found a task beside garbage: %v", err)
			}
			if _, err := a.Archive(t.Context(), 0, head, archivetest.Entries(t, 0, 3, 1)); !errors.Is(err, store.ErrConflict) {
				t.Errorf("archived after a forged segment: %v", err)
			}
		})
	}
}

// ofShard makes a message's data of a body that it changes to one of another shard.
func ofShard(shard byte, body []byte) []byte {
	body[2] = shard
	return s2.Encode(nil, body)
}

func TestArchive_GapIsDamageThatNamesTheEntry(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	a, js := openArchive(t, s), byHand(t, s.URL)
	head := archive(t, a, 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 2))
	archive(t, a, 1, store.ArchiveHead{Entry: 3}, archivetest.Entries(t, 1, 4, 2))
	late := messageAt(t, js, head.Sequence+1)
	forge(t, js, late.Header, ofShard(0, unpack(t, late.Data)))
	for _, from := range []uint64{1, 3} {
		_, err := archivetest.Collect(a.ReadArchive(t.Context(), 0, from))
		if !errors.Is(err, events.ErrDamaged) || !errors.Is(err, store.ErrTrimmed) || !strings.Contains(err.Error(), "entry 4 where 3 is due") {
			t.Errorf("read from %d across a gap: %v", from, err)
		}
	}
}

// unreliable is a way to a server on which the next request or answer of a stream is lost, and then the connection.
type unreliable struct {
	address           string
	request, answer   atomic.Bool // to lose
	requests, answers atomic.Int32
	fetched           atomic.Int32 // messages that were asked for
	made              atomic.Int32 // streams that were to be made or updated
}

// InProcessConn implements nats.InProcessConnProvider.
func (u *unreliable) InProcessConn() (net.Conn, error) {
	conn, err := net.Dial("tcp", u.address)
	return &unreliableConn{conn, u}, err
}

type unreliableConn struct {
	net.Conn
	way *unreliable
}

func (c *unreliableConn) Write(p []byte) (int, error) {
	c.way.fetched.Add(int32(bytes.Count(p, []byte("STREAM.MSG.GET."))))
	c.way.made.Add(int32(bytes.Count(p, []byte("STREAM.CREATE."))) + int32(bytes.Count(p, []byte("STREAM.UPDATE."))))
	if strings.Contains(string(p), "HPUB") && c.way.request.CompareAndSwap(true, false) {
		c.way.requests.Add(1)
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(p)
}

func (c *unreliableConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	got := string(p[:n])
	ours := strings.Contains(got, `"stream":"TASKLEDGER_`) || strings.Contains(got, "stream_msg_get_response")
	if err == nil && ours && c.way.answer.CompareAndSwap(true, false) {
		c.way.answers.Add(1)
		return 0, io.EOF
	}
	return n, err
}

func TestArchive_SegmentOfUnknownOutcomeIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	way := &unreliable{address: strings.TrimPrefix(s.URL, "nats://")}
	a := archiveOf(t, natsbus.Config{InProcess: way}, natsbus.ArchiveConfig{})
	head := archive(t, a, 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 2))
	way.answer.Store(true)
	head = archive(t, a, 0, head, archivetest.Entries(t, 0, 3, 2))
	way.request.Store(true)
	head = archive(t, a, 0, head, archivetest.Entries(t, 0, 5, 1))
	if want := (store.ArchiveHead{Entry: 5, Sequence: 3}); head != want || way.requests.Load() != 1 || way.answers.Load() != 1 {
		t.Errorf("head %+v after %d lost requests and %d lost answers; want %+v and one of each",
			head, way.requests.Load(), way.answers.Load(), want)
	}
	got, err := archivetest.Collect(a.ReadArchive(t.Context(), 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, archivetest.Entries(t, 0, 1, 5))
}

func TestArchive_RequestEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	way := &unreliable{address: strings.TrimPrefix(s.URL, "nats://")}
	a := archiveOf(t, natsbus.Config{InProcess: way}, natsbus.ArchiveConfig{})
	archive(t, a, 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 2))
	way.answer.Store(true)
	if _, err := a.Head(t.Context(), 0); !errors.Is(err, nats.ErrDisconnected) || way.answers.Load() != 1 {
		t.Errorf("%v after %d lost answers, want one that ended with its connection", err, way.answers.Load())
	}
}

func TestArchive_BeyondTheServersLimitNamesBothSizes(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	s.Stop()
	s.MaxPayload = 512 << 10
	s.Start()
	a := openArchive(t, s)
	var large []store.Record
	for number := uint64(1); number <= 3; number++ {
		large = append(large, archivetest.Entry(t, 0, number, events.MaxPayloadBytes-1, "t"))
	}
	_, err := a.Archive(t.Context(), 0, store.ArchiveHead{}, large)
	if !errors.Is(err, nats.ErrMaxPayload) || !strings.Contains(err.Error(), "limit of 524288") || !strings.Contains(err.Error(), "78") {
		t.Errorf("archived 768 KiB: %v", err)
	}
	archive(t, a, 0, store.ArchiveHead{}, large[:1])
}

func TestArchive_ExistingStreamIsUsedIfItKeepsEverything(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set func(*jetstream.StreamConfig)
		fit bool
	}{
		"plain":             {func(c *jetstream.StreamConfig) {}, true},
		"refuses when full": {func(c *jetstream.StreamConfig) { c.MaxBytes, c.Discard = 1<<30, jetstream.DiscardNew }, true},
		"removes when full": {func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 30 }, false},
		"removes the old":   {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, false},
		"one per subject":   {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject, c.Discard = 1, jetstream.DiscardNew }, false},
		"in memory":         {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, false},
		"until read":        {func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, false},
		"acknowledges none": {func(c *jetstream.StreamConfig) { c.NoAck = true }, false},
		"acknowledges soon": {func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testcluster.StartJetStream(t)
			cfg := jetstream.StreamConfig{Name: archiveStream, Subjects: []string{"taskledger.archive.*"}}
			c.set(&cfg)
			if _, err := byHand(t, s.URL).CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			_, err := openArchive(t, s).Archive(t.Context(), 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 1))
			if c.fit && err != nil {
				t.Error(err)
			}
			if !c.fit && (err == nil || !strings.Contains(err.Error(), "would not keep everything")) {
				t.Errorf("used: %v", err)
			}
		})
	}
}

func TestArchive_NodesThatBeginTogetherMakeOneStream(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	var beginning sync.WaitGroup
	for shard := range 8 {
		a := openArchive(t, s)
		beginning.Go(func() {
			if _, err := a.Archive(t.Context(), shard, store.ArchiveHead{}, archivetest.Entries(t, shard, 1, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	beginning.Wait()
	stream, err := byHand(t, s.URL).Stream(t.Context(), archiveStream)
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo(); got.State.Msgs != 8 || !got.Config.DenyDelete || !got.Config.DenyPurge ||
		got.Config.Compression != jetstream.NoCompression || got.Config.AllowDirect {
		t.Errorf("stream %+v", got)
	}
}

func TestArchive_ClustersDoNotShareIt(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	archive(t, openArchive(t, s), 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 1))
	blue := archiveOf(t, natsbus.Config{URLs: []string{s.URL}, Cluster: "blue"}, natsbus.ArchiveConfig{})
	if head, err := blue.Head(t.Context(), 0); head != (store.ArchiveHead{}) || err != nil {
		t.Errorf("head in another cluster: %+v, %v", head, err)
	}
	archive(t, blue, 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 1))
}

func TestArchive_ConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	bus := open(t, natsbus.Config{URLs: []string{"nats://127.0.0.1:1"}})
	for _, replicas := range []int{-1, 6} {
		if _, err := bus.Archive(natsbus.ArchiveConfig{Replicas: replicas}); err == nil || !strings.Contains(err.Error(), "replicas") {
			t.Errorf("%d replicas: %v", replicas, err)
		}
	}
	for configured, want := range map[time.Duration]time.Duration{0: 3 * time.Minute, -1: 0, time.Second: time.Second} {
		a, err := bus.Archive(natsbus.ArchiveConfig{DurableAfter: configured})
		if err != nil {
			t.Fatal(err)
		}
		if got := a.DurableAfter(); got != want {
			t.Errorf("durable after %s with %s, want %s", got, configured, want)
		}
	}
}

// BenchmarkArchive stores full segments on a server that syncs every message.
func BenchmarkArchive(b *testing.B) {
	s := testcluster.StartJetStream(b)
	a := openArchive(b, s)
	var head store.ArchiveHead
	b.SetBytes(store.MaxSegmentBytes)
	for b.Loop() {
		b.StopTimer()
		var entries []store.Record
		for i := range uint64(7) {
			number := head.Entry + i + 1
			entries = append(entries, archivetest.Entry(b, 0, number, 127<<10, events.TaskID(fmt.Sprint(number))))
		}
		b.StartTimer()
		head = archive(b, a, 0, head, entries)
	}
}
