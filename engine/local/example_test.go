package local_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"taskledger/engine"
	"taskledger/engine/local"
	"taskledger/item"
	"taskledger/taskstore"
)

// quiet keeps what a node logs out of the examples.
func quiet() engine.NodeConfig { return engine.NodeConfig{Log: slog.New(slog.DiscardHandler)} }

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for range 2 {
		n, err := local.StartWith(ctx, local.Config{Dir: dir, Node: quiet()})
		if err != nil {
			panic(err)
		}
		fmt.Println(addOne(ctx, n), n.Close())
	}
	// Output:
	// 1 items in group map <nil>
	// 2 items in group map <nil>
}

// addOne adds an item to a task store of a node, and says how many are there.
func addOne(ctx context.Context, n *local.Node) string {
	s, err := taskstore.Open(n.Stores(), "default", taskstore.Options{})
	if err != nil {
		return err.Error()
	}
	if _, err := s.Update(ctx, item.Update{Adds: []item.Add{{Group: "map", Data: []byte("/path/to/file")}}}); err != nil {
		return err.Error()
	}
	items := 0
	for _, err := range s.Group(ctx, "map", taskstore.List{}) {
		if err != nil {
			return err.Error()
		}
		items++
	}
	return fmt.Sprint(items, " items in group map")
}
