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
)

func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	greet := behaviors.Define[string, string]("greet", nil)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	t0 := time.Now()
	node, err := embedded.StartWith(ctx, embedded.Config{Log: log, Node: engine.NodeConfig{Behaviors: []engine.Behavior{greet.Bind(func(ctx context.Context, name string) (string, error) {
		return "hello, " + name, nil
	})}}})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("started", time.Since(t0))
	for i := range 3 {
		t0 = time.Now()
		f, err := greet.Submit(ctx, node, fmt.Sprint("Ada", i))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("submitted", time.Since(t0))
		v, err := f.Wait(ctx)
		fmt.Println(v, err, time.Since(t0))
	}
	vs, err := node.Verify(ctx, nil)
	for _, v := range vs {
		if v.Entries > 0 {
			fmt.Printf("%+v\n", v)
		}
	}
	t0 = time.Now()
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("closed", time.Since(t0))
}
