// Command memory runs a task on an engine in memory. It links neither etcd nor NATS, so it is built in a fourth of the
// time that a program with these takes.
package main

import (
	"context"
	"fmt"
	"log"

	"taskledger/behaviors"
	"taskledger/engine/local"
)

var greet = behaviors.Define[string, string]("greet", nil)

func hello(_ context.Context, name string) (string, error) { return "hello, " + name, nil }

func main() {
	ctx := context.Background()
	node, err := local.Memory(ctx, greet.Bind(hello))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	f, _ := greet.Submit(ctx, node.Client, "Ada") // an error comes back from Wait as well
	fmt.Println(f.Wait(ctx))
}
