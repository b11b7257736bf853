package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// brokenBus takes no subscription.
type brokenBus struct{ store.Bus }

var errNoBus = errors.New("no bus")

func (brokenBus) Subscribe(context.Context, string, string, func(store.Message)) error {
	return errNoBus
}

func TestNewNode_SaysOnceWhatIsWrong(t *testing.T) {
	for want, cfg := range map[string]engine.NodeConfig{
		"slots: -2, want -1 to 65536":                              {Slots: -2},
		"slots: 65537, want -1 to 65536":                           {Slots: 65_537},
		"ttl: 1m1s, want 3s to 1m0s":                               {TTL: 61 * time.Second},
		"limits: a=1, want 0 or more for a behavior of the node: ": {Limits: map[string]int{"a": 1}},
		"behavior fetch: no function is bound to it":               {Behaviors: []task.Behavior{behaviors.Define[int, int]("fetch", nil).Bind(nil)}},
	} {
		var invalid *store.InvalidError
		if err := cfg.Validate(); !errors.As(err, &invalid) || err.Error() != want { // a store may come later
			t.Errorf("validated: %v, want %s", err, want)
		}
		cfg.Store = struct{ store.Store }{} // nobody asks it
		if _, err := engine.NewNode(cfg); !errors.As(err, &invalid) || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestRun_CalledTwiceSaysSo(t *testing.T) {
	c, err := engine.NewClient(engine.ClientConfig{Bus: brokenBus{}, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); !errors.Is(err, errNoBus) {
		t.Errorf("first call: %v, want %v", err, errNoBus)
	}
	if err := c.Run(t.Context()); !errors.Is(err, task.ErrClosed) || !strings.Contains(err.Error(), "Run was called twice") {
		t.Errorf("second call: %v", err)
	}
}

// Nobody who did not choose it should learn of it from a full etcd.
func TestNode_SaysAtItsStartThatNothingIsArchivedUnlessThatIsChosen(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 1})
	for name, configure := range map[string]func(*cfg){
		"not chosen": func(*cfg) {},
		"kept":       func(c *cfg) { c.Trimming = engine.TrimNothing },
		"dropped":    func(c *cfg) { c.Trimming = engine.TrimAll },
		"archived":   func(c *cfg) { c.Archive = newShelf() },
		"no owner":   noShards,
	} {
		var log strings.Builder // read when the node has ended
		n := c.StartNode(strings.ReplaceAll(name, " ", "-"), func(c *cfg) {
			configure(c)
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		n.Stop()
		if said := strings.Contains(log.String(), "no archive is configured"); said != (name == "not chosen") {
			t.Errorf("%s: %s", name, log.String())
		}
	}
}
