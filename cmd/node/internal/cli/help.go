package cli

import (
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// reaching marks flags that say how a cluster is reached: many commands have them, and their help shows them behind its
// own.
const reaching = "taskledger_reaching"

// mark marks a flag as reaching.
func mark(f *pflag.Flag) { f.Annotations = map[string][]string{reaching: nil} }

// usages returns the flags of a command that are marked, or the others, as help shows them; "" = it has none.
func usages(c *cobra.Command, marked bool) string {
	set := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	set.SortFlags = c.Flags().SortFlags
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, is := f.Annotations[reaching]; is == marked {
			set.AddFlag(f)
		}
	})
	return strings.TrimRight(set.FlagUsages(), " \n")
}

// templateFuncs registers what the template of help calls: cobra keeps these for the whole process.
var templateFuncs = sync.OnceFunc(func() {
	cobra.AddTemplateFunc("ownFlags", func(c *cobra.Command) string { return usages(c, false) })
	cobra.AddTemplateFunc("reachingFlags", func(c *cobra.Command) string { return usages(c, true) })
})

// orderHelp has the help of each command show its own flags first.
func orderHelp(root *cobra.Command) {
	templateFuncs()
	const all = "{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	const ordered = "{{ownFlags .}}{{with reachingFlags .}}\n\nTo reach the cluster:\n{{.}}{{end}}"
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), all, ordered, 1))
}
