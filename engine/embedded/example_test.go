package embedded_test

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/task"
)

// clock is a wall clock that a test moves ahead.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// A test of a service runs its behaviors on a real node with real servers in a temporary directory, by a clock of
// its own. A node notices within a second that its clock has moved.
func ExampleStartWith() {
	ctx := context.Background()
	remind := behaviors.Define("remind", &behaviors.Rules[string, string]{
		Delay: func(string) time.Duration { return 30 * 24 * time.Hour },
	})
	var clock clock
	node, err := embedded.StartWith(ctx, embedded.Config{
		NoNATS: true, // one node needs none, and starts sooner without it
		Node: engine.NodeConfig{Now: clock.now, Behaviors: []task.Behavior{
			remind.Bind(func(_ context.Context, who string) (string, error) { return "mail to " + who, nil }),
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	f, _ := remind.Submit(ctx, node, "Ada") // an error comes back from Wait as well
	e, err := node.Explain(ctx, f.ID())
	fmt.Println(e.Why, err)
	clock.advance(30 * 24 * time.Hour)
	fmt.Println(f.Wait(ctx))
	// Output:
	// scheduled <nil>
	// mail to Ada <nil>
}
