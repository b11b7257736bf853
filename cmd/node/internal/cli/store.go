package cli

import (
	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/storecli"
)

func (a *app) storeCommand() *cobra.Command {
	return (&storecli.Terminal{In: a.In, Print: a.print, Principal: principal, Ask: a.clientCommand}).Command()
}
