package cli

import (
	"fmt"
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

// near returns the names that a word may have been meant for.
func near(word string, names []string) []string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	if len(word) < 5 { // most short words are two letters apart
		all.SuggestionsMinimumDistance = 1
	}
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(word)
}

// unknownCommand refuses words behind a command that has subcommands, and names those that may have been meant.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	of := ""
	if c.HasParent() {
		of = c.Name() + ": "
	}
	if meant := near(args[0], names); len(meant) > 0 {
		return fmt.Errorf("%sunknown command %q: is %s meant?", of, args[0], or(meant))
	}
	return fmt.Errorf("%sunknown command %q", of, args[0])
}

// or writes words as alternatives: "a", "a or b", "a, b or c".
func or(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
