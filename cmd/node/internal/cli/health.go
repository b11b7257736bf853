package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/health"
)

// healthName names the command that probes call.
const healthName = "health"

func (a *app) healthCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   healthName,
		Short: "Ask the node that these settings start whether it is ready",
		Long: `Health is for the probes of containers and for scripts. It takes the flags, variables and file of settings of serve, and asks the
node on this machine that they start: at --metrics, else at --api, else at the socket in --data. Exit code 0 means that the
node is ready, 4 that it is not, or does not answer within 3 s.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			node := health.Node{
				Metrics:         a.serve.metrics,
				MetricsInsecure: a.serve.metricsInsecure,
				API:             a.serve.api.Address,
				Cert:            a.serve.api.Cert,
				Dir:             a.access.dir,
			}
			if err := node.Ready(cmd.Context()); err != nil {
				return err
			}
			_, err := fmt.Fprintln(a.Out, "ready")
			return err
		},
	}
	a.addServeFlags(c)
	return c
}
