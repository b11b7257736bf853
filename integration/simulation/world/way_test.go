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

func TestWay_Weather(t *testing.T) {
	for name, test := range map[string]struct {
		weather weather
		after   time.Duration // it ends
		hit     hit
		answer  bool
		arrives int
	}{
		"fair":                 {weather{}, 0, "", true, 1},
		"held and released":    {weather{held: 1}, time.Second, held, true, 1},
		"away":                 {weather{away: 1}, time.Hour, refused, false, 0},
		"one-way":              {weather{oneWay: 1}, time.Hour, replyLost, false, 1},
		"request lost":         {weather{loseRequest: 1}, time.Hour, requestLost, false, 0},
		"reply lost":           {weather{loseReply: 1}, time.Hour, replyLost, false, 1},
		"copied":               {weather{copies: 1}, time.Hour, copied, true, 2},
		"slow beyond patience": {weather{slow: time.Minute}, time.Hour, slowed, false, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late sync.WaitGroup
				y := newWay(newDice(1), &late, t.Context())
				y.change(func(is *weather) { *is = test.weather })
				time.AfterFunc(test.after, func() { y.change(func(is *weather) { *is = weather{} }) })
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				arrived := 0
				_, err := y.Call(ctx, modeletcd.Call{Writes: true, Make: func() (proto.Message, error) {
					arrived++
					return nil, nil
				}})
				late.Wait()
				if (err == nil) != test.answer || test.arrives >= 0 && arrived != test.arrives {
					t.Errorf("answered %v, arrived %d times; want %v, %d", err, arrived, test.answer, test.arrives)
				}
				if test.hit != "" && y.hits.count(test.hit) == 0 {
					t.Errorf("no %s counted", test.hit)
				}
			})
		})
	}
}

// A process that is dead sends nothing, and does not spin.
func TestWay_DeadIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late sync.WaitGroup
		dead, kill := context.WithCancel(t.Context())
		y := newWay(newDice(1), &late, dead)
		kill()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := y.Call(ctx, modeletcd.Call{Make: func() (proto.Message, error) {
			t.Error("it was sent")
			return nil, nil
		}})
		if err == nil || time.Since(began) != time.Second {
			t.Errorf("error %v after %s, want one after a second", err, time.Since(began))
		}
	})
}
