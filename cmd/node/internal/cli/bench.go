package cli

import (
	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/benchcli"
)

func (a *app) benchCommand() *cobra.Command {
	c := (&benchcli.Terminal{In: a.In, Out: a.Out, Err: a.Err, JSON: func() bool { return a.output == "json" }}).Command()
	c.Example = a.examples(
		example{"a thousand callers, for half a minute", []string{"bench", "--in-flight", "1000", "--duration", "30s"}},
		example{"latency of one caller, etcd over gRPC", []string{"bench", "--in-flight", "1", "--client", "grpc"}})
	return c
}
