package work_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/work"
	"taskledger/work/feed"
	"taskledger/work/feed/memfeed"
)

// limited is a source that lets large messages pass.
type limited struct {
	*memfeed.Source
	most int
}

func (l limited) MaxBytes() int { return l.most }

// Each of the large messages fills the room of the run alone.
func TestAsyncUpdate_AMessageThatFillsTheRoomIsProcessedWithAllOfItsKeys(t *testing.T) {
	large := strings.Repeat(" ", 64<<20)
	for name, messages := range map[string][]string{
		"with two keys":          {"a b" + large, "b"},
		"behind another one":     {"a", "a b c" + large, "c"},
		"without changes":        {large, "a", "b"},
		"without changes, first": {large, large, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, r := newQueue(messages...), newStreamRecord()
				q.source = limited{q.Open(), 65 << 20}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := attemptStream(t, ctx, r, q.stream(3)); err != nil {
					t.Error(err)
				}
				q.wantAcked(t, upTo(uint64(len(messages)))...)
			})
		})
	}
}

func TestAsyncUpdate_AMessageAboveTheLimitIsParkedByItsPlaceWhateverItsSourceSays(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		most := strings.Repeat(" ", feed.MaxMessageBytes-1)
		q, r := newQueue("a"+most, "b "+most, "c"), newStreamRecord()
		s := q.stream(threads)
		converted := []uint64(nil)
		s.Convert = func(ctx context.Context, p int, m feed.Message) ([]change, error) {
			converted = append(converted, m.Place)
			return convert(ctx, p, m)
		}
		runStream(t, r, s)
		q.wantAcked(t, 1, 2, 3)
		q.wantApplied(t, "a:[1] c:[3]")
		if !slices.Equal(converted, []uint64{1, 3}) {
			t.Errorf("converted %d", converted)
		}
		if len(r.holds) != 1 || len(r.holds[0].changes[0].Data) > 1000 ||
			!strings.Contains(r.holds[0].changes[0].Message, "message 2 has 1048577 bytes: the message is above the limit of 1048576") {
			t.Fatalf("holds %v", r.holds)
		}
		if got := r.retry(t.Context(), work.DefineStream("sync", nil, s), r.holds[0]); got != "success" {
			t.Errorf("resumed: %s", got)
		}
		q.wantApplied(t, "a:[1] b:[2] c:[3]")
	})
}
