package cli

import (
	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/bench"
)

func (a *app) benchCommand() *cobra.Command {
	c := bench.Command(a.Out, func() bool { return a.output == "json" })
	c.Example = a.examples(
		example{"a thousand callers, for half a minute", []string{"bench", "--in-flight", "1000", "--duration", "30s"}},
		example{"latency of one caller", []string{"bench", "--in-flight", "1"}})
	return c
}
