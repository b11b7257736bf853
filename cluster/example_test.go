package cluster_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"taskledger/behaviors"
	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/task"
)

var greet = behaviors.Define[string, string]("greet", nil)

func hello(_ context.Context, name string) (string, error) { return "hello, " + name, nil }

// A node of a service, on servers of its own.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := cluster.Open(ctx, cluster.Config{
		Etcd: []string{"https://etcd-1:2379", "https://etcd-2:2379", "https://etcd-3:2379"},
		NATS: []string{"tls://nats:4222"}, NATSCreds: "service.creds",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	node, err := c.NewNode(engine.NodeConfig{Behaviors: []task.Behavior{greet.Bind(hello)}})
	if err != nil {
		log.Fatal(err)
	}
	if err := node.Run(ctx); err != nil {
		log.Print(err)
	}
}

// A process that submits and waits, and runs nothing itself. It links no server.
func ExampleCluster_NewClient() {
	ctx, stop := context.WithCancel(context.Background())
	c, err := cluster.Open(ctx, cluster.Config{Etcd: []string{"etcd-1:2379"}, NATS: []string{"nats://nats:4222"}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	client, err := c.NewClient(engine.ClientConfig{Name: "billing"}) // recorded as the submitter of every task
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- client.Run(ctx) }()
	f, _ := greet.Submit(ctx, client, "Ada") // an error comes back from Wait as well
	fmt.Println(f.Wait(ctx))
	stop()
	<-ended // Close comes after the end of Run
}

// A client beside a node with the servers inside, here in the same process for brevity.
func ExampleConfig_directory() {
	dir, err := os.MkdirTemp("", "service")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background())
	node, err := embedded.Start(ctx, dir, greet.Bind(hello))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	c, err := cluster.Open(ctx, cluster.Config{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	client, err := c.NewClient(engine.ClientConfig{Name: "service"})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- client.Run(ctx) }()
	f, _ := greet.Submit(ctx, client, "Ada") // an error comes back from Wait as well
	fmt.Println(f.Wait(ctx))
	stop()
	<-ended
	// Output: hello, Ada <nil>
}
