package integration_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/events"
)

func TestSmoke2(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	greet := behaviors.Define[string, string]("greet", nil)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	bind := greet.Bind(func(ctx context.Context, name string) (string, error) { return "hello, " + name, nil })
	s, err := embedded.StartServers(ctx, embedded.ServersConfig{NoNATS: os.Getenv("NONATS") != ""})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mk := func(name string, slots int, bs ...engine.Behavior) (*engine.Node, func()) {
		store, bus, err := s.Connect(ctx, 0, log)
		if err != nil {
			t.Fatal(err)
		}
		cfg := engine.NodeConfig{Store: store, Name: name, Slots: slots, Behaviors: bs, Log: log.With("name", name), TTL: 3 * time.Second, Grace: time.Second}
		if bus != nil {
			cfg.Bus = bus
		}
		n, err := engine.NewNode(cfg)
		if err != nil {
			t.Fatal(err)
		}
		rctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- n.Run(rctx) }()
		<-n.Ready()
		return n, func() {
			stop()
			if err := <-done; err != nil {
				t.Error(name, err)
			}
			if bus != nil {
				bus.Close()
			}
			store.Close()
		}
	}
	a, stopA := mk("a", -1)
	b, stopB := mk("b", 512, bind)
	time.Sleep(500 * time.Millisecond)
	for i := range 5 {
		t0 := time.Now()
		f, err := greet.Submit(ctx, a, fmt.Sprint("Ada", i))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("submitted", time.Since(t0))
		v, err := f.Wait(ctx)
		fmt.Println(v, err, time.Since(t0))
	}
	// wait for handover
	for {
		n := 0
		shards, _ := a.Shards(ctx)
		for _, s := range shards {
			if s.Owner == b.SessionID() {
				n++
			}
		}
		fmt.Println("b owns", n)
		if n == 8 {
			break
		}
		time.Sleep(time.Second)
	}
	for i := range 5 {
		t0 := time.Now()
		f, err := greet.SubmitWith(ctx, a, "x", engine.SubmitOptions{ID: events.TaskID(fmt.Sprint("x", i))})
		_ = f
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("submitted", time.Since(t0))
		v, err := f.Wait(ctx)
		fmt.Println(v, err, time.Since(t0))
	}
	vs, err := a.Verify(ctx, nil)
	for _, v := range vs {
		if v.Entries > 0 {
			fmt.Printf("%+v\n", v)
		}
	}
	t0 := time.Now()
	stopB()
	fmt.Println("b drained", time.Since(t0))
	f, err := greet.Submit(ctx, a, "late")
	fmt.Println(f.ID(), err)
	b2, stopB2 := mk("b", 512, bind)
	_ = b2
	v, err := f.Wait(ctx)
	fmt.Println(v, err, time.Since(t0))
	stopB2()
	stopA()
}
