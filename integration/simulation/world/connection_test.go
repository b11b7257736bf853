package world

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"taskledger/internal/modeletcd"
)

func TestConnection_Faults(t *testing.T) {
	for name, test := range map[string]struct {
		faults  faultSettings
		after   time.Duration // it ends
		hit     hit
		answer  bool
		arrives int
	}{
		"fair":                {faultSettings{}, 0, "", true, 1},
		"held and released":   {faultSettings{held: 1}, time.Second, held, true, 1},
		"away":                {faultSettings{away: 1}, time.Hour, refused, false, 0},
		"one-way":             {faultSettings{oneWay: 1}, time.Hour, replyLost, false, 1},
		"request lost":        {faultSettings{loseRequest: 1}, time.Hour, requestLost, false, 0},
		"reply lost":          {faultSettings{loseReply: 1}, time.Hour, replyLost, false, 1},
		"copied":              {faultSettings{copies: 1}, time.Hour, copied, true, 2},
		"slow beyond timeout": {faultSettings{slow: time.Minute}, time.Hour, slowed, false, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late sync.WaitGroup
				conn := newConnection(newDice(1), &late, t.Context())
				conn.change(func(f *faultSettings) { *f = test.faults })
				time.AfterFunc(test.after, func() { conn.change(func(f *faultSettings) { *f = faultSettings{} }) })
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				arrived := 0
				_, err := conn.Call(ctx, modeletcd.Call{Writes: true, Make: func() (proto.Message, error) {
					arrived++
					return nil, nil
				}})
				late.Wait()
				if (err == nil) != test.answer || test.arrives >= 0 && arrived != test.arrives {
					t.Errorf("answered %v, arrived %d times; want %v, %d", err, arrived, test.answer, test.arrives)
				}
				if test.hit != "" && conn.hits.count(test.hit) == 0 {
					t.Errorf("no %s counted", test.hit)
				}
			})
		})
	}
}

// A process that is dead sends nothing, and does not spin.
func TestConnection_DeadIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late sync.WaitGroup
		dead, kill := context.WithCancel(t.Context())
		conn := newConnection(newDice(1), &late, dead)
		kill()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := conn.Call(ctx, modeletcd.Call{Make: func() (proto.Message, error) {
			t.Error("it was sent")
			return nil, nil
		}})
		if err == nil || time.Since(began) != time.Second {
			t.Errorf("error %v after %s, want one after a second", err, time.Since(began))
		}
	})
}
