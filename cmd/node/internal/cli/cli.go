// Package cli is the command line: it reads flags, variables and a file, asks a cluster, and prints what it says.
package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/suggest"
	"taskledger/internal/version"
)

// Main runs the program and returns its exit code. It ends soon after ctx; a node drains first.
func Main(ctx context.Context, p Program) int {
	a := &app{Program: p}
	root := a.root()
	root.SetArgs(p.Args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	defer a.flush()
	asked, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitcode.OK
	}
	if !a.parsed {
		words := strings.Fields(strings.TrimPrefix(asked.CommandPath(), root.CommandPath()))
		fmt.Fprintf(a.Err, "%s: %v\nsee: %s\n", p.Name, flags.Alone(err), p.command(append(words, "--help")...))
		return exitcode.Usage
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		goesOn := ""
		if paused, is := errors.AsType[*pausedError](err); is {
			goesOn = ": " + paused.text
		}
		fmt.Fprintf(a.Err, "%s: interrupted%s\n", p.Name, output.Clean(goesOn))
		return exitcode.Interrupted
	}
	fmt.Fprintf(a.Err, "%s: %v\n", p.Name, oneLine(err))
	return exitcode.Of(err)
}

// oneLine joins the lines of errors that were joined, and keeps what they tell of tasks and files from steering the
// terminal. What two functions have said one after the other it says once.
func oneLine(err error) string {
	const apart = ": "
	parts := strings.Split(strings.NewReplacer(":\n", apart, "\n", "; ").Replace(err.Error()), apart)
	return output.Clean(strings.Join(slices.Compact(parts), apart))
}

const about = `Taskledger remembers work, runs it on one node at a time, and can prove what happened.

Without a command it serves: a node with etcd and NATS inside, for you alone, its data in ./taskledger-data. Other
commands, from another terminal, ask that node, or the cluster that --etcd and --nats name.

Every flag of serve, and those that say where the cluster is, can also be given as a variable (TASKLEDGER_DATA for
--data, TASKLEDGER_EXEC_ALLOW for --exec-allow) or as a line of a YAML file (--config). A flag wins over a variable, a
variable over the file. An empty variable is wrong usage.

Exit codes: 0 done; 1 the task failed, verify found something, sync diff --exit-code found a difference, or repair
left something to do; 2 wrong usage; 3 no such task, schedule or collection; 4 the cluster is unavailable or did not
answer in time, an outcome did not come in time, or a node cannot start or go on, as its port, directory or disk is
not available; 5 refused or denied; 6 what is asked of the task, as its history, is no longer kept; 130 interrupted.`

func (a *app) root() *cobra.Command {
	a.settings = newSettings()
	root := &cobra.Command{
		Use:           "taskledger",
		Short:         "Durable tasks on etcd and NATS",
		Long:          about,
		Version:       version.Version,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: a.Name},
		Args:          suggest.Command,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateFlagGroups(); err != nil {
				return err
			}
			serves := cmd.Flags().Lookup("join") == a.serve.flags().Lookup("join") // where --data beside --etcd has a meaning
			data := cmd.Flags().Changed("data") && !cmd.Flags().Changed("etcd") && !serves
			if err := a.settings.apply(cmd.Flags()); err != nil {
				return err
			}
			for _, name := range a.settings.strange() {
				fmt.Fprintf(a.Err, "%s: no setting is named by the variable %s\n", a.Name, output.Clean(name))
			}
			if data && len(a.access.addresses.Etcd) > 0 {
				return &exitcode.UsageError{Problem: "--data: a variable or the file of settings names etcd, which would be asked instead: leave one of them out"}
			}
			err := flags.NotEmpty(cmd.Flags())
			if cmd.Name() != healthName { // it asks no servers, and is typed without the flags that name them
				err = errors.Join(err, a.access.check())
			}
			if err != nil {
				return err
			}
			if a.output != "table" && a.output != "json" {
				return fmt.Errorf("--output %s: want table or json", a.output)
			}
			a.parsed = true
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runNode(cmd.Context()) },
	}
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "table", "form of what is printed: table, or json with one object a line")
	root.PersistentFlags().StringVar(&a.settings.file, "config", "", "YAML file of settings, named like the flags (TASKLEDGER_CONFIG)")
	a.settings.take(a.access.flags())
	a.settings.take(a.serve.flags())
	a.settings.take(root.PersistentFlags())

	a.addServeFlags(root)
	a.completeNodeFlags(root)
	for _, g := range a.groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	for _, c := range root.Commands() {
		if c.HasSubCommands() {
			c.Args = suggest.Command
		}
	}
	orderHelp(root)
	root.AddCommand(a.guardCommand())
	flags.RefuseTopics(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 { // the flag may be one of what was meant
			return suggest.Command(c, words)
		}
		return suggest.Flag(c, err)
	})
	a.showExamples(root)
	return root
}

// group is a part of the help.
type group struct {
	id, title string
	commands  []*cobra.Command
}

// groups returns every command there is. A new one is a file of its own and a word here.
func (a *app) groups() []group {
	return []group{
		{"node", "Run nodes:", []*cobra.Command{
			a.serveCommand(),
			a.checkCommand(),
			a.healthCommand(),
			a.tokenCommand(),
			a.demoCommand(),
			a.mirrorCommand(),
			a.benchCommand(),
			a.versionCommand(),
		}},
		{"task", "Tasks:", append(a.verbCommands(),
			a.submitCommand(),
			a.behaviorsCommand(),
			a.getCommand(),
			a.waitCommand(),
			a.listCommand(),
			a.countsCommand(),
			a.storeCommand(),
			a.scheduleCommand(),
			a.workCommand(),
			a.syncCommand(),
		)},
		{"look", "Look inside:", []*cobra.Command{
			a.uiCommand(),
			a.historyCommand(),
			a.logsCommand(),
			a.stateCommand(),
			a.explainCommand(),
			a.replayCommand(),
			a.nodesCommand(),
			a.shardsCommand(),
			a.statsCommand(),
			a.settingsCommand(),
			a.repairCommand(),
		}},
		{"move", "Move and keep:", []*cobra.Command{
			a.copyCommand(),
			a.backupCommand(),
			a.restoreCommand(),
		}},
		{"prove", "Prove:", []*cobra.Command{
			a.verifyCommand(),
			a.exportCommand(),
			a.checkpointCommand(),
		}},
	}
}
