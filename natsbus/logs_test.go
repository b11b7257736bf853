package natsbus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/tasklog"
	"taskledger/tasklog/tasklogtest"
)

const (
	logStream  = "TASKLEDGER_LOGS"
	logSubject = "taskledger.logs.3.7.1" // of logged
)

// logged is the log of most tests.
var logged = tasklog.Attempt{Shard: 3, Life: 7, Number: 1}

func openLogs(t testing.TB, cfg natsbus.Config, how natsbus.LogsConfig) *natsbus.Logs {
	t.Helper()
	cfg.Key = clusterKey
	bus, err := natsbus.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bus.Close() })
	l, err := bus.Logs(how)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func logsAt(t testing.TB, s *testcluster.NATS) *natsbus.Logs {
	t.Helper()
	return openLogs(t, natsbus.Config{URLs: []string{s.URL}}, natsbus.LogsConfig{})
}

// purge removes messages of the stream of logs by hand.
func purge(t testing.TB, js jetstream.JetStream, subject string) {
	t.Helper()
	stream, err := js.Stream(t.Context(), logStream)
	if err == nil {
		err = stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestLogs_KeepTheirContract(t *testing.T) {
	tasklogtest.Run(t, func(t *testing.T) tasklogtest.Fixture {
		s := testcluster.StartJetStream(t)
		return tasklogtest.Fixture{
			Store: logsAt(t, s),
			Empty: func(of tasklog.Attempt) {
				purge(t, byHand(t, s.URL), fmt.Sprintf("taskledger.logs.%d.%d.%d", of.Shard, of.Life, of.Number))
			},
		}
	})
}

// appendLog appends a batch that tasklogtest makes, and returns the end.
func appendLog(t testing.TB, l *natsbus.Logs, of tasklog.Attempt, after tasklog.End, b tasklog.Batch) tasklog.End {
	t.Helper()
	end, err := l.Append(t.Context(), of, after, b)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// wantLog fails the test unless the log has these batches.
func wantLog(t testing.TB, l *natsbus.Logs, want ...tasklog.Batch) {
	t.Helper()
	got, err := l.Read(t.Context(), logged, tasklog.Range{})
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b tasklog.Batch) bool { return a.First == b.First && slices.Equal(a.Lines, b.Lines) }
	if !slices.EqualFunc(got.Batches, want, same) {
		t.Errorf("%d batches %.200v, want %d", len(got.Batches), got.Batches, len(want))
	}
}

func TestLogs_BatchOfUnknownOutcomeIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	way := &unreliable{address: strings.TrimPrefix(s.URL, "nats://")}
	l := openLogs(t, natsbus.Config{InProcess: way}, natsbus.LogsConfig{})
	end := appendLog(t, l, logged, tasklog.End{}, tasklogtest.Lines(1, 2))
	way.answer.Store(true)
	end = appendLog(t, l, logged, end, tasklogtest.Lines(3, 2))
	way.request.Store(true)
	end = appendLog(t, l, logged, end, tasklogtest.Lines(5, 1))
	if want := (tasklog.End{Line: 5, Place: 3}); end != want || way.requests.Load() != 1 || way.answers.Load() != 1 {
		t.Errorf("end %+v after %d lost requests and %d lost answers; want %+v and one of each",
			end, way.requests.Load(), way.answers.Load(), want)
	}
	wantLog(t, l, tasklogtest.Lines(1, 2), tasklogtest.Lines(3, 2), tasklogtest.Lines(5, 1))
}

// Many attempts write their first lines at once when a node begins.
func TestLogs_OfManyWritersMakeTheStreamOnce(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	way := &unreliable{address: strings.TrimPrefix(s.URL, "nats://")}
	l := openLogs(t, natsbus.Config{InProcess: way}, natsbus.LogsConfig{})
	var writing sync.WaitGroup
	for i := range uint32(100) {
		writing.Go(func() {
			of := tasklog.Attempt{Shard: 1, Life: 1, Number: i + 1}
			if _, err := l.Append(t.Context(), of, tasklog.End{}, tasklogtest.Lines(1, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	if n := way.made.Load(); n != 1 {
		t.Errorf("the stream was made or updated %d times", n)
	}
}

func TestLogs_SurviveARestartOfTheServerAndGoOn(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	l := logsAt(t, s)
	end := appendLog(t, l, logged, tasklog.End{}, tasklogtest.Lines(1, 2))
	s.Stop()
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := l.Append(short, logged, end, tasklogtest.Lines(3, 2)); !errors.Is(err, nats.ErrDisconnected) {
		t.Errorf("appended without a server: %v", err)
	}
	s.Start()
	appendLog(t, l, logged, end, tasklogtest.Lines(3, 2))
	wantLog(t, l, tasklogtest.Lines(1, 2), tasklogtest.Lines(3, 2))
}

func TestLogs_OfAWriterAcrossARestartTellEveryLineOrItsGap(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	l := logsAt(t, s)
	w, err := tasklog.NewWriter(l, logged)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	out, written := w.Output(tasklog.Info, false), uint64(0)
	write := func(lines int) {
		for range lines {
			written++
			fmt.Fprintln(out, "line", written)
		}
	}
	stored := func() bool {
		got, err := l.Read(t.Context(), logged, tasklog.Range{})
		return err == nil && got.Last == written
	}
	write(100)
	testcluster.Await(t, "the first lines are stored", stored)
	s.Stop()
	write(5000)
	s.Start()
	testcluster.Await(t, "the last line is stored", stored)
	w.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	q := tasklog.Query{Shard: logged.Shard, Life: logged.Life, Attempts: []tasklog.Begun{{Number: 1}}}
	next, missing := uint64(1), uint64(0)
	for more := true; more; {
		p, err := tasklog.ReadTask(t.Context(), l, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range p.Lines {
			missing += line.Missing
			if first := line.Number - max(line.Missing, 1) + 1; first != next {
				t.Fatalf("line %d where %d is due", first, next)
			}
			if text := fmt.Sprint("line ", line.Number); line.Missing == 0 && line.Text != text {
				t.Fatalf("%q, want %q", line.Text, text)
			}
			next = line.Number + 1
		}
		q.After, more = p.Next, p.More
	}
	if next != written+1 || missing == 0 || missing != w.Dropped() {
		t.Errorf("told up to line %d of %d, %d are missing, %d were dropped", next-1, written, missing, w.Dropped())
	}
}

func TestLogs_EveryCallEndsWithoutAServer(t *testing.T) {
	t.Parallel()
	l := openLogs(t, natsbus.Config{URLs: []string{"nats://127.0.0.1:1"}}, natsbus.LogsConfig{})
	var calling sync.WaitGroup
	for name, call := range logCalls(l) {
		calling.Go(func() {
			if err := call(t.Context()); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "5s") {
				t.Errorf("%s without a server: %v", name, err)
			}
		})
	}
	calling.Wait()
}

func logCalls(l *natsbus.Logs) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"append": func(ctx context.Context) error {
			_, err := l.Append(ctx, logged, tasklog.End{}, tasklogtest.Lines(1, 1))
			return err
		},
		"read":   func(ctx context.Context) error { _, err := l.Read(ctx, logged, tasklog.Range{}); return err },
		"trim":   func(ctx context.Context) error { return l.Trim(ctx, logged, tasklog.Whole) },
		"forget": func(ctx context.Context) error { return l.Forget(ctx, logged.Shard, logged.Life, 0) },
		"lives":  func(ctx context.Context) error { _, _, err := l.Lives(ctx, logged.Shard, 0); return err },
	}
}

func TestLogs_WithoutJetStreamAreUnavailableAndNotEmpty(t *testing.T) {
	t.Parallel()
	l := logsAt(t, testcluster.StartNATS(t))
	for name, call := range logCalls(l) {
		if err := call(t.Context()); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, natsbus.ErrNoJetStream) {
			t.Errorf("%s without JetStream: %v", name, err)
		}
	}
}

// noise makes a batch of 64 KiB, which S2 compresses little.
func noise(first uint64) tasklog.Batch {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b, random := tasklogtest.Lines(first, 4), rand.New(rand.NewPCG(first, 0))
	for i := range b.Lines {
		text := make([]byte, tasklog.MaxLineBytes)
		for j := range text {
			text[j] = letters[random.IntN(len(letters))]
		}
		b.Lines[i].Text = string(text)
	}
	return b
}

func TestLogs_BoundsOfTheStreamRemoveTheOldestAndAWriterGoesOn(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	l := openLogs(t, natsbus.Config{URLs: []string{s.URL}}, natsbus.LogsConfig{MaxBytes: 1 << 20})
	end := appendLog(t, l, logged, tasklog.End{}, tasklogtest.Lines(1, 2))
	began := events.MillisOf(time.Now())
	other, flood := tasklog.Attempt{Shard: 4, Life: 1, Number: 1}, tasklog.End{}
	for range 30 {
		flood = appendLog(t, l, other, flood, noise(flood.Line+1))
	}
	got, err := l.Read(t.Context(), logged, tasklog.Range{})
	if err != nil || got.Last != 0 || got.Oldest < began {
		t.Errorf("of a log that was emptied after %d: %+v, %v", began, got, err)
	}
	got, err = l.Read(t.Context(), other, tasklog.Range{})
	if err != nil || got.Last != flood.Line || len(got.Batches) == 0 || got.Batches[0].First == 1 {
		t.Errorf("of the log that fills the stream: %d batches up to line %d, %v", len(got.Batches), got.Last, err)
	}
	end = appendLog(t, l, logged, end, tasklogtest.Lines(3, 2))
	appendLog(t, l, logged, end, tasklogtest.Lines(5, 1))
	wantLog(t, l, tasklogtest.Lines(3, 2), tasklogtest.Lines(5, 1))
}

// 10 MiB are 160 batches, one a second here. A second of them is found with a tenth of these, though other logs stand
// between them.
func TestLogs_RangeOfASecondFetchesATenthOfTheLog(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	way := &unreliable{address: strings.TrimPrefix(s.URL, "nats://")}
	l := openLogs(t, natsbus.Config{InProcess: way}, natsbus.LogsConfig{})
	const batches, perBatch, between = 160, 4, 15
	others, end := byHand(t, s.URL).Conn(), tasklog.End{}
	for i := range uint64(batches) {
		b := noise(perBatch*i + 1)
		for j := range b.Lines {
			b.Lines[j].At = tasklogtest.Begin + events.Millis(1000*i) + events.Millis(1000/perBatch*j)
		}
		end = appendLog(t, l, logged, end, b)
		for other := range between {
			if err := others.Publish(fmt.Sprint("taskledger.logs.4.1.", other), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := others.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if end.Place < batches*between {
		t.Fatalf("the log ends at %d: the others are not between its batches", end.Place)
	}
	for _, batch := range []uint64{0, 1, 25, 79, 80, 121, 158, 159} {
		for offset, found := range map[events.Millis]int{0: 1, 500: 2} { // a second that begins with a batch, or within it
			before := way.fetched.Load()
			at := tasklogtest.Begin + events.Millis(1000*batch) + offset
			got, err := l.Read(t.Context(), logged, tasklog.Range{Since: at, Until: at + 999})
			if batch == batches-1 {
				found = 1
			}
			first := batch*perBatch + 1
			if err != nil || len(got.Batches) != found || got.Batches[0].First != first || got.Before != first-1 {
				t.Fatalf("%d ms within batch %d: %d batches, before %d, %v", offset, batch, len(got.Batches), got.Before, err)
			}
			if fetched := way.fetched.Load() - before; fetched > batches/10 {
				t.Errorf("%d ms within batch %d took %d messages, want %d at most", offset, batch, fetched, batches/10)
			}
		}
	}
}

// JetStream tells 100,000 subjects at a time; what answers here tells two.
func TestLogs_LivesGoOnWhereAPageOfSubjectsEnds(t *testing.T) {
	t.Parallel()
	s := testcluster.StartNATS(t)
	subjects := []string{
		"taskledger.logs.3.10.1", "taskledger.logs.3.7.1",
		"taskledger.logs.3.7.2", "taskledger.logs.3.8.1",
	}
	jetStream := byHand(t, s.URL).Conn()
	_, err := jetStream.Subscribe("$JS.API.STREAM.INFO.TASKLEDGER_LOGS", func(m *nats.Msg) {
		var asked struct {
			Offset int
			Filter string `json:"subjects_filter"`
		}
		if err := json.Unmarshal(m.Data, &asked); err != nil || asked.Filter != "taskledger.logs.3.*.*" {
			t.Errorf("asked for %s", m.Data)
		}
		told := map[string]int{}
		for _, subject := range subjects[asked.Offset:min(asked.Offset+2, len(subjects))] {
			told[subject] = 1
		}
		answer, err := json.Marshal(map[string]any{"total": len(subjects), "state": map[string]any{"subjects": told}})
		if err == nil {
			err = m.Respond(answer)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err == nil {
		err = jetStream.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	l := logsAt(t, s)
	for page, want := range map[int][]events.Ref{0: {7, 10}, 2: {7, 8}} {
		lives, next, err := l.Lives(t.Context(), 3, page)
		if err != nil || !slices.Equal(lives, want) || next != (page+2)%4 {
			t.Errorf("page %d: lives %v, next %d, %v; want %v", page, lives, next, err, want)
		}
	}
	if _, _, err := l.Lives(t.Context(), 3, -1); err == nil || !strings.Contains(err.Error(), "page: below 0") {
		t.Errorf("page -1: %v", err)
	}
}

// publishLog puts a message on the subject of a log, as anybody may who has the rights of a node.
func publishLog(t testing.TB, js jetstream.JetStream, header nats.Header, data []byte) {
	t.Helper()
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: logSubject, Header: header, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// messageOf returns the message of a batch, as it stands on the wire.
func messageOf(t testing.TB, js jetstream.JetStream, place uint64) (nats.Header, []byte) {
	t.Helper()
	stream, err := js.Stream(t.Context(), logStream)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	m.Header.Del("Nats-Expected-Last-Subject-Sequence")
	m.Header.Del("Nats-Expected-Stream")
	return m.Header, m.Data
}

func TestLogs_MessagesByHandAreLeftOut(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	l, js := logsAt(t, s), byHand(t, s.URL)
	second := logged
	second.Number = 2
	header, data := messageOf(t, js, appendLog(t, l, second, tasklog.End{}, tasklogtest.Lines(2, 1)).Place)
	appendLog(t, l, logged, tasklog.End{}, tasklogtest.Lines(1, 1))
	body := unpack(t, data)
	ours := slices.Clone(body)
	ours[4] = 1 // the attempt, behind array, version, shard and life
	for name, forged := range map[string][]byte{
		"of another attempt":  data,
		"no compression":      ours,
		"nothing":             nil,
		"cut":                 s2.Encode(nil, ours[:len(ours)-1]),
		"a tail":              s2.Encode(nil, append(slices.Clone(ours), 0)),
		"another version":     s2.Encode(nil, append([]byte{ours[0], 2}, ours[2:]...)),
		"more than it may be": s2.Encode(nil, make([]byte, 3<<20)),
	} {
		publishLog(t, js, header, forged)
		wantLog(t, l, tasklogtest.Lines(1, 1))
		if t.Failed() {
			t.Fatal(name)
		}
	}
	publishLog(t, js, nil, s2.Encode(nil, ours)) // no headers: nobody knows its lines
	if _, err := l.Read(t.Context(), logged, tasklog.Range{}); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("a log that ends with garbage: %v", err)
	}
	end := tasklog.End{Line: 1, Place: 2}
	if _, err := l.Append(t.Context(), logged, end, tasklogtest.Lines(2, 2)); !errors.Is(err, tasklog.ErrTaken) {
		t.Errorf("appended to a log that ends with garbage: %v", err)
	}
	publishLog(t, js, header, s2.Encode(nil, ours)) // as a writer would have sent it
	wantLog(t, l, tasklogtest.Lines(1, 1), tasklogtest.Lines(2, 1))
}

func TestLogs_BeyondTheServersLimitAreRefused(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	s.Stop()
	s.MaxPayload = 32 << 10
	s.Start()
	l := logsAt(t, s)
	_, err := l.Append(t.Context(), logged, tasklog.End{}, noise(1))
	if !errors.Is(err, store.ErrRefused) || !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("appended 64 KiB: %v", err)
	}
	appendLog(t, l, logged, tasklog.End{}, tasklogtest.Lines(1, 1))
}

func TestLogs_StreamThatExistsGetsTheBoundsOfWhoWritesAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	js := byHand(t, s.URL)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name:        logStream,
		Description: "by hand",
		Subjects:    []string{"taskledger.logs.*.*.*"},
		MaxBytes:    1 << 20,
		Discard:     jetstream.DiscardNew,
	}); err != nil {
		t.Fatal(err)
	}
	how := natsbus.LogsConfig{Cluster: "one", MaxBytes: 2 << 20, MaxAge: time.Hour}
	l := openLogs(t, natsbus.Config{URLs: []string{s.URL}}, how)
	appendLog(t, l, logged, tasklog.End{}, tasklogtest.Lines(1, 1))
	stream, err := js.Stream(t.Context(), logStream)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if c.MaxBytes != 2<<20 || c.MaxAge != time.Hour || c.MaxMsgs != 1_000_000 || c.Discard != jetstream.DiscardOld {
		t.Errorf("bounds of stream %+v", c)
	}
	if c.Description != "by hand" || c.Metadata["taskledger-cluster"] != "one" {
		t.Errorf("stream %+v", c)
	}
}

// A stream that was made for a longer age remembers the ids of messages for longer than the new one lasts.
func TestLogs_StreamThatExistsGetsAnAgeOfLessThanMinutes(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	end := appendLog(t, logsAt(t, s), logged, tasklog.End{}, tasklogtest.Lines(1, 1))
	how := natsbus.LogsConfig{MaxAge: time.Minute}
	appendLog(t, openLogs(t, natsbus.Config{URLs: []string{s.URL}}, how), logged, end, tasklogtest.Lines(2, 1))
	stream, err := byHand(t, s.URL).Stream(t.Context(), logStream)
	if err != nil {
		t.Fatal(err)
	}
	if is := stream.CachedInfo().Config.MaxAge; is != time.Minute {
		t.Errorf("the age is %s", is)
	}
}

func TestLogs_OfAStreamThatWasRemovedBeginAnew(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	l, began := logsAt(t, s), events.MillisOf(time.Now())
	end := appendLog(t, l, logged, tasklog.End{}, tasklogtest.Lines(1, 1))
	if err := byHand(t, s.URL).DeleteStream(t.Context(), logStream); err != nil {
		t.Fatal(err)
	}
	wantLog(t, l)
	got, err := l.Read(t.Context(), logged, tasklog.Range{})
	if err != nil || got.Oldest < began {
		t.Errorf("nothing is left from before %d, told is %d, %v", began, got.Oldest, err)
	}
	second := tasklog.Attempt{Shard: 3, Life: 8, Number: 1}
	appendLog(t, logsAt(t, s), second, tasklog.End{}, tasklogtest.Lines(1, 1))
	made, err := l.Read(t.Context(), logged, tasklog.Range{})
	if least := began.Add(-11 * time.Second); err != nil || made.Oldest < least || made.Oldest >= began {
		t.Errorf("once it is made again: %d, %v, want seconds before %d", made.Oldest, err, began)
	}
	if err := byHand(t, s.URL).DeleteStream(t.Context(), logStream); err != nil {
		t.Fatal(err)
	}
	never, err := logsAt(t, s).Read(t.Context(), logged, tasklog.Range{})
	if err != nil || never.Oldest != 0 {
		t.Errorf("who has never seen the stream: %d, %v", never.Oldest, err)
	}
	if _, err := l.Append(t.Context(), logged, end, tasklogtest.Lines(2, 1)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("appended without a stream: %v", err)
	}
	appendLog(t, l, logged, end, tasklogtest.Lines(2, 1)) // sent again, as a writer does
	wantLog(t, l, tasklogtest.Lines(2, 1))
}

func TestLogs_OfAnotherClusterAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	of := func(cluster string) *natsbus.Logs {
		return openLogs(t, natsbus.Config{URLs: []string{s.URL}}, natsbus.LogsConfig{Cluster: cluster})
	}
	appendLog(t, of("one"), logged, tasklog.End{}, tasklogtest.Lines(1, 1))
	for name, call := range logCalls(of("two")) {
		err := call(t.Context())
		if !errors.Is(err, store.ErrConflict) || !errors.Is(err, store.ErrUnavailable) ||
			!strings.Contains(err.Error(), "cluster one") {
			t.Errorf("%s of another cluster: %v", name, err)
		}
	}
	wantLog(t, of("one"), tasklogtest.Lines(1, 1))
}

func TestLogs_ConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	bus := open(t, natsbus.Config{URLs: []string{"nats://127.0.0.1:1"}})
	for want, cfg := range map[string]natsbus.LogsConfig{
		"replicas: -1": {Replicas: -1},
		"replicas: 6":  {Replicas: 6},
		"bytes: 1000":  {MaxBytes: 1000},
		"age: 1ms":     {MaxAge: time.Millisecond},
	} {
		if _, err := bus.Logs(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
