package modeletcd

import (
	"bytes"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// batchRevisions bounds the revisions in one response of a watch that catches up.
	batchRevisions = 1000
	emptyRange     = "mvcc: watcher range is empty"
)

// stream is the server's side of a watch stream. The model's mutex guards it.
type stream struct {
	watches []*watch // by id
	next    int64    // id of the next watch
	queue   []*pb.WatchResponse
	ended   error         // unless nil, after the queue
	wake    chan struct{} // has a token when the queue or ended has changed
}

type watch struct {
	id int64
	span
	from     int64 // the first revision it tells
	noPut    bool
	noDelete bool
}

func (m *Model) openStream() *stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &stream{wake: make(chan struct{}, 1)}
	m.streams = append(m.streams, s)
	return s
}

// endStream forgets the stream; its client sees err, after what is queued.
func (m *Model) endStream(s *stream, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end(s, err)
}

func (m *Model) end(s *stream, err error) {
	if i := slices.Index(m.streams, s); i >= 0 {
		m.streams = slices.Delete(m.streams, i, i+1)
		s.ended = err
		s.signal()
	}
}

// BreakWatches ends all watch streams with an error, as a change of leader does to those that require one. The real
// client resumes after codes.Unavailable, except after rpctypes.ErrNoLeader, which nil stands for.
func (m *Model) BreakWatches(err error) {
	if err == nil {
		err = rpctypes.ErrGRPCNoLeader
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range slices.Clone(m.streams) {
		m.end(s, err)
	}
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) send(r *pb.WatchResponse) {
	s.queue = append(s.queue, r)
	s.signal()
}

// receive waits for the next response of the stream.
func (m *Model) receive(ctx context.Context, s *stream) (*pb.WatchResponse, error) {
	for {
		if err := ctx.Err(); err != nil {
			m.endStream(s, err)
			return nil, err
		}
		if resp, err := m.take(s); resp != nil || err != nil {
			return resp, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
}

// take returns what is next of the stream; neither when it must be waited for.
func (m *Model) take(s *stream) (*pb.WatchResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, s.ended
	}
	resp := s.queue[0]
	s.queue = s.queue[1:]
	return resp, nil
}

// request carries out a request of the client on its stream; a request that is not modelled ends the stream.
func (m *Model) request(s *stream, r *pb.WatchRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.ended != nil {
		return // the client learns it from Recv
	}
	switch {
	case r.GetCreateRequest() != nil:
		m.create(s, r.GetCreateRequest())
	case r.GetCancelRequest() != nil:
		id := r.GetCancelRequest().WatchId
		if i := slices.IndexFunc(s.watches, func(w *watch) bool { return w.id == id }); i >= 0 {
			s.watches = slices.Delete(s.watches, i, i+1)
			s.send(&pb.WatchResponse{Header: m.header(), WatchId: id, Canceled: true})
		}
	default:
		m.end(s, unimplemented("WatchRequest.progress_request"))
	}
}

func (m *Model) create(s *stream, r *pb.WatchCreateRequest) {
	switch {
	case r.ProgressNotify:
		m.end(s, unimplemented("WatchCreateRequest.progress_notify"))
		return
	case r.PrevKv:
		m.end(s, unimplemented("WatchCreateRequest.prev_kv"))
		return
	case r.WatchId != 0:
		m.end(s, unimplemented("WatchCreateRequest.watch_id"))
		return
	}
	w := &watch{
		span:     span{bytes.Clone(r.Key), bytes.Clone(r.RangeEnd)},
		from:     r.StartRevision,
		noPut:    slices.Contains(r.Filters, pb.WatchCreateRequest_NOPUT),
		noDelete: slices.Contains(r.Filters, pb.WatchCreateRequest_NODELETE),
	}
	if len(w.key) == 0 {
		w.key = []byte{0}
	}
	refused := ""
	switch {
	case w.from < 0:
		refused = rpctypes.ErrCompacted.Error()
	case len(w.end) > 0 && !w.unbounded() && bytes.Compare(w.key, w.end) >= 0:
		refused = emptyRange
	}
	if refused != "" {
		s.send(&pb.WatchResponse{Header: m.header(), WatchId: clientv3.InvalidWatchID, Created: true, Canceled: true, CancelReason: refused})
		return
	}
	w.id = s.next
	s.next++
	s.send(&pb.WatchResponse{Header: m.header(), WatchId: w.id, Created: true})
	if w.from == 0 {
		w.from = m.keys.rev + 1
	}
	if w.from <= m.keys.rev && w.from < m.keys.compacted {
		s.send(&pb.WatchResponse{Header: m.headerAt(0), WatchId: w.id, Canceled: true, CompactRevision: m.keys.compacted})
		return
	}
	s.watches = append(s.watches, w)
	m.catchUp(s, w)
}

// catchUp sends a new watch the changes since the revision it begins with.
func (m *Model) catchUp(s *stream, w *watch) {
	var events []*mvccpb.Event
	revisions := 0
	for rev := w.from; rev <= m.keys.rev; rev++ {
		told := w.pick(m.keys.log[rev])
		if len(told) == 0 {
			continue
		}
		if revisions++; revisions > batchRevisions {
			s.send(&pb.WatchResponse{Header: m.header(), WatchId: w.id, Events: events})
			events, revisions = nil, 1
		}
		events = append(events, told...)
	}
	if len(events) > 0 {
		s.send(&pb.WatchResponse{Header: m.header(), WatchId: w.id, Events: events})
	}
}

// notify tells all watches of the present revision.
func (m *Model) notify(events []*mvccpb.Event) {
	for _, s := range m.streams {
		for _, w := range s.watches {
			if w.from > m.keys.rev {
				continue
			}
			if told := w.pick(events); len(told) > 0 {
				s.send(&pb.WatchResponse{Header: m.header(), WatchId: w.id, Events: told})
			}
		}
	}
}

// pick returns copies of the events that the watch is about.
func (w *watch) pick(events []*mvccpb.Event) (told []*mvccpb.Event) {
	for _, ev := range events {
		deleted := ev.Type == mvccpb.Event_DELETE
		if w.contains(ev.Kv.Key) && !(deleted && w.noDelete) && !(!deleted && w.noPut) {
			told = append(told, &mvccpb.Event{Type: ev.Type, Kv: clone(ev.Kv)})
		}
	}
	return told
}
