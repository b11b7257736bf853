package cli

import (
	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/tokencli"
)

func (a *app) tokenCommand() *cobra.Command {
	c := (&tokencli.Terminal{Out: a.Out, JSON: func() bool { return a.output == "json" }, Dir: func() string { return a.access.dir }}).
		Command(func(c *cobra.Command) { c.Flags().AddFlag(a.access.flags().Lookup("data")) })
	c.Example = a.examples(
		example{"one for a service that submits", []string{"token", "new", "billing", "--role", "submitter"}},
		example{"one for a tenant, who sees its own tasks alone", []string{"token", "new", "tenant-7", "--role", "operator", "--prefix", "tenant-7."}})
	return c
}
