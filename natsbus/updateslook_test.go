package natsbus_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/internal/testcluster"
)

// Somebody else has acknowledged messages that are open here, and the stream has removed others between them: which of
// those that are here it still has is found out with few requests.
func TestUpdates_LookForMessagesThatMayBeGoneWithFewRequests(t *testing.T) {
	t.Parallel()
	for _, removed := range []int{10, 10_100} {
		u := newUpdates(t)
		u.cfg.AckWait = time.Minute
		if err := u.js.DeleteStream(t.Context(), "FILES"); err != nil {
			t.Fatal(err)
		}
		_, err := u.js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name:              "FILES",
			Subjects:          []string{"files.>"},
			MaxMsgsPerSubject: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		s, conn := u.open()
		const open = 300
		u.publish(open)
		var want []uint64
		for place := range uint64(open) {
			want = append(want, place+1)
		}
		u.wantNext(s, want...)
		for range removed + 1 {
			if _, err := u.js.PublishAsync("files.again", nil, jetstream.WithStallWait(timeout)); err != nil {
				t.Fatal(err)
			}
		}
		<-u.js.PublishAsyncComplete()
		u.wantNext(s, open+1+uint64(removed))
		other := u.conn()
		acknowledged := fmt.Sprintf("$JS.ACK.FILES.reader.1.1.1.%d.0", time.Now().UnixNano())
		if err := other.PublishMsg(&nats.Msg{Subject: acknowledged, Data: []byte("+ACK")}); err != nil {
			t.Fatal(err)
		}
		testcluster.Await(t, "somebody else has acknowledged message 1", func() bool { return u.info().NumAckPending == open })
		if err := conn.ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		testcluster.Await(t, "the connection is back", func() bool { return conn.IsConnected() && conn.Stats().Reconnects > 0 })
		before := conn.Stats().OutMsgs
		u.wantNothing(s, 8*time.Second)
		most := uint64(20 * 8)
		if removed > 10_000 {
			most += open // one look by requests for each
		}
		if sent := conn.Stats().OutMsgs - before; sent > most {
			t.Errorf("%d messages removed: %d requests in 8 s, want %d at most", removed, sent, most)
		}
		if !slices.Contains([]int{open, open + 1}, u.info().NumAckPending) {
			t.Errorf("%d messages are open", u.info().NumAckPending)
		}
	}
}
