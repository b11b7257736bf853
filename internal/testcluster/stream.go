package testcluster

import (
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/internal/wire"
	"taskledger/store"
)

// Stream is a cluster's archive as somebody has it in hands who may write everything in NATS.
type Stream struct {
	t      testing.TB
	js     jetstream.JetStream
	config jetstream.StreamConfig
}

// Stream opens the archive of the cluster without a name of its own, which has begun.
func (n *NATS) Stream() *Stream {
	n.t.Helper()
	conn, err := nats.Connect(n.URL)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := js.Stream(n.t.Context(), "TASKLEDGER_ARCHIVE")
	if err != nil {
		n.t.Fatal(err)
	}
	return &Stream{n.t, js, s.CachedInfo().Config}
}

// Segments returns what is in the stream, in order.
func (s *Stream) Segments() (all []*nats.Msg) {
	s.t.Helper()
	in, err := s.js.Stream(s.t.Context(), s.config.Name)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range in.CachedInfo().State.LastSeq {
		m, err := in.GetMsg(s.t.Context(), i+1)
		if err != nil {
			s.t.Fatal(err)
		}
		for name := range m.Header {
			if strings.HasPrefix(name, "Nats-") {
				m.Header.Del(name)
			}
		}
		all = append(all, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
	}
	return all
}

// Replace makes the stream anew, of other segments.
func (s *Stream) Replace(segments []*nats.Msg) {
	s.t.Helper()
	if err := s.js.DeleteStream(s.t.Context(), s.config.Name); err != nil {
		s.t.Fatal(err)
	}
	Await(s.t, "the stream made anew, once the server has removed the files of the old one", func() bool {
		_, err := s.js.CreateStream(s.t.Context(), s.config)
		return err == nil
	})
	for _, m := range segments {
		if _, err := s.js.PublishMsg(s.t.Context(), m); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Shorten has the server remove what is older than a second, as JetStream's API lets everybody who may use it, and
// returns when nothing is left.
func (s *Stream) Shorten() {
	s.t.Helper()
	short := s.config
	short.MaxAge, short.Duplicates = time.Second, time.Second
	in, err := s.js.UpdateStream(s.t.Context(), short)
	if err != nil {
		s.t.Fatal(err)
	}
	Await(s.t, "the end of the last message", func() bool {
		now, err := in.Info(s.t.Context())
		return err == nil && now.State.Msgs == 0
	})
}

// Edited is a segment whose entries were changed, its headers as they were.
func (s *Stream) Edited(m *nats.Msg, change func([]store.Record) []store.Record) *nats.Msg {
	s.t.Helper()
	body, err := s2.Decode(nil, m.Data)
	if err != nil {
		s.t.Fatal(err)
	}
	r := wire.NewReader(body)
	r.ArrayOf(3)
	version, shard := r.Uint(), r.Uint()
	entries := make([]store.Record, r.Array())
	for i := range entries {
		r.ArrayOf(3)
		entries[i] = store.Record{Head: store.Head{Number: r.Uint(), Revision: r.Int()}, Data: r.Bytes()}
	}
	if err := r.Close(); err != nil {
		s.t.Fatal(err)
	}
	entries = change(entries)
	var w wire.Writer
	w.Array(3)
	w.Uint(version)
	w.Uint(shard)
	w.Array(len(entries))
	for _, rec := range entries {
		w.Array(3)
		w.Uint(rec.Number)
		w.Int(rec.Revision)
		w.Bytes(rec.Data)
	}
	return &nats.Msg{Subject: m.Subject, Header: m.Header, Data: s2.Encode(nil, w.B)}
}
