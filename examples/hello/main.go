package main

import (
	"context"
	"fmt"
	"log"

	"taskledger/behaviors"
	"taskledger/engine/embedded"
)

var greet = behaviors.Define[string, string]("greet", nil)

func hello(_ context.Context, name string) (string, error) { return "hello, " + name, nil }

func main() {
	ctx := context.Background()
	node, err := embedded.Start(ctx, "./taskledger-data", greet.Bind(hello))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	f, _ := greet.Submit(ctx, node, "Ada") // an error comes back from Wait as well
	fmt.Println(f.Wait(ctx))
}
