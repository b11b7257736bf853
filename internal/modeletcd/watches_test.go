package modeletcd_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// watched is a watch on both sides.
type watched struct {
	key         string
	noPut       bool
	model, etcd clientv3.WatchChan
}

// watch opens one on both sides. One that is refused is read at once: a later compaction would change what it says.
func (p *pair) watch() {
	w := watched{key: p.key(), noPut: p.flag("no puts")}
	opts := p.span()
	if w.noPut {
		opts = append(opts, clientv3.WithFilterPut())
	} else if p.flag("no deletes") {
		opts = append(opts, clientv3.WithFilterDelete())
	}
	now, from := p.flag("now"), p.revision()
	open := func(s *side) clientv3.WatchChan {
		opts := append(slices.Clone(opts), clientv3.WithCreatedNotify())
		if !now {
			opts = append(opts, clientv3.WithRev(s.base+from))
		}
		return s.client.Watch(p.ctx, w.key, opts...)
	}
	w.model, w.etcd = open(p.model), open(p.etcd)
	p.opened = append(p.opened, w.model, w.etcd)
	got, want := opened(p.model, w.model), opened(p.etcd, w.etcd)
	if got != want {
		p.Fatalf("watch from %d of compacted %d:\nmodel %s\netcd  %s", from, p.compacted, got, want)
	}
	switch {
	case want != created:
		return
	case !now && from < p.compacted:
		got, want := refusal(p.model, <-w.model), refusal(p.etcd, <-w.etcd)
		if got != want {
			p.Fatalf("watch from %d of compacted %d:\nmodel %s\netcd  %s", from, p.compacted, got, want)
		}
		for range w.model { // the client may hang where a watch is refused while another one of its stream ends
		}
		for range w.etcd {
		}
		return
	case !now:
		p.floor = min(p.floor, from)
	}
	p.watched = append(p.watched, w)
}

// awaitEnds returns when every watch has ended, once their context has.
func (p *pair) awaitEnds() {
	for _, c := range p.opened {
		for range c { // what it still tells is not compared
		}
	}
}

const created = "created"

// opened reads the first response of a watch.
func opened(s *side, c clientv3.WatchChan) string {
	resp := <-c
	if resp.Created && resp.Err() == nil {
		return created
	}
	return refusal(s, resp)
}

func refusal(s *side, r clientv3.WatchResponse) string {
	return fmt.Sprintf("error %v, compacted %d, %d events", r.Err(), s.relative(r.CompactRevision), len(r.Events))
}

// end changes every watched key twice, and compares what the watches told until then.
func (p *pair) end() {
	p.model.setFull(p.ctx, false)
	p.etcd.setFull(p.ctx, false)
	for range 3 { // no watch begins in the future any more
		p.do("put", func(s *side) answer { return s.do(p.ctx, clientv3.OpPut(unwatched, "")) })
	}
	var puts, deletes []clientv3.Op
	for _, key := range keys {
		puts = append(puts, clientv3.OpPut(key, "end"))
		deletes = append(deletes, clientv3.OpDelete(key))
	}
	p.do("last puts", func(s *side) answer { return s.do(p.ctx, clientv3.OpTxn(nil, puts, nil)) })
	put := p.now
	p.do("last deletes", func(s *side) answer { return s.do(p.ctx, clientv3.OpTxn(nil, deletes, nil)) })
	deleted := p.now
	for _, w := range p.watched {
		until := put
		if w.noPut {
			until = deleted
		}
		want, err := told(p.ctx, p.etcd, w.etcd, until)
		if err != nil {
			p.Fatalf("etcd: watch of %q: %v", w.key, err)
		}
		got, err := told(p.ctx, p.model, w.model, until)
		if err != nil {
			p.Fatalf("model: watch of %q: %v", w.key, err)
		}
		if got != want {
			p.Fatalf("watch of %q:\nmodel %s\netcd  %s", w.key, got, want)
		}
	}
}

// told reads the events of a watch up to those of the revision. No revision must be split between responses.
func told(ctx context.Context, s *side, c clientv3.WatchChan, until int64) (string, error) {
	var events []string
	last := int64(math.MinInt64)
	for last < until {
		var resp clientv3.WatchResponse
		select {
		case resp = <-c:
		case <-ctx.Done():
			return "", fmt.Errorf("%w after %s", ctx.Err(), events)
		}
		if err := resp.Err(); err != nil || len(resp.Events) == 0 {
			return "", errors.Join(err, fmt.Errorf("ended after %s", events))
		}
		if first := s.relative(resp.Events[0].Kv.ModRevision); first <= last {
			return "", fmt.Errorf("event of revision %d after one of %d", first, last)
		}
		for _, ev := range resp.Events {
			last = s.relative(ev.Kv.ModRevision)
			if last <= until {
				events = append(events, fmt.Sprint(ev.Type, " ", s.pair(ev.Kv)))
			}
		}
		if s.relative(resp.Header.Revision) < last {
			return "", fmt.Errorf("response of revision %d tells of %d", s.relative(resp.Header.Revision), last)
		}
	}
	return strings.Join(events, ", "), nil
}
