package work_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"taskledger/behaviors"
	"taskledger/work"
	"taskledger/work/feed"
	"taskledger/work/feed/memfeed"
)

// Journal is the parameter of the stream: who has changed, in order.
type Journal struct{ Of []string }

// since yields what has changed behind a token: a database would select it by a sequence.
func since(_ context.Context, p Journal, token string) iter.Seq2[work.Change[string], error] {
	return func(yield func(work.Change[string], error) bool) {
		first, _ := strconv.Atoi(token)
		for i, name := range p.Of[first:] {
			c := work.Change[string]{
				Key:   name,
				Token: strconv.Itoa(first + i + 1),
				Value: name + "'s change " + strconv.Itoa(first+i+1),
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func ExampleDefineStream() {
	broken := true
	accounts := work.DefineStream("accounts", nil, work.Stream[Journal, string]{
		Changes: since,
		Process: func(_ context.Context, c work.Change[string]) error {
			if c.Key == "otto" && broken {
				return behaviors.Code("locked", fmt.Errorf("%s is locked", c.Key), nil)
			}
			fmt.Println(c.Value)
			return nil
		},
	})
	if err := accounts.Validate(); err != nil {
		fmt.Println(err)
	}
	all := Journal{[]string{"anna", "rosa", "otto", "anna"}}

	record := newStreamRecord() // the engine's, in a node
	attempt := record.attempt()
	_, err := accounts.Attempt(context.Background(), attempt, all, work.Attempt{Stream: attempt})
	fmt.Println("token", record.token, err)

	broken = false
	attempt = record.attempt()
	state, err := accounts.Attempt(context.Background(), attempt, all, work.Attempt{Stream: attempt})
	fmt.Println("token", record.token, state == work.Finished, err)

	// Output:
	// anna's change 1
	// rosa's change 2
	// token 2 change of otto at "3" in stream 1 failed with code "locked", and no rule has the stream go on: otto is locked
	// otto's change 3
	// anna's change 4
	// token 4 true <nil>
}

func ExampleDefineStream_pushed() {
	queue := memfeed.New(memfeed.Config{}) // or a consumer of JetStream, by package natsbus
	queue.Publish("accounts", []byte("anna"))
	queue.Publish("accounts", []byte("otto"))
	accounts := work.DefineStream("accounts", nil, work.Stream[Journal, string]{
		Source: func(context.Context, Journal) (feed.Source, error) { return queue.Open(), nil },
		Convert: func(_ context.Context, _ Journal, m feed.Message) ([]work.Change[string], error) {
			return []work.Change[string]{{Key: string(m.Data), Value: m.Subject}}, nil
		},
		Process: func(_ context.Context, c work.Change[string]) error {
			fmt.Println(c.Value, c.Key)
			return nil
		},
		Idle: time.Millisecond,
	})
	record := newStreamRecord()
	attempt := record.attempt()
	state, err := accounts.Attempt(context.Background(), attempt, Journal{}, work.Attempt{Stream: attempt})
	fmt.Println("acknowledged", queue.Acknowledged(), state == work.Finished, err)

	// Output:
	// accounts anna
	// accounts otto
	// acknowledged [1 2] true <nil>
}
