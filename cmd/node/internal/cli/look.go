package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/api/view"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

func (a *app) explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:               "explain ID...",
		Short:             "Say why tasks do not run, and since when",
		Args:              flags.Arguments,
		ValidArgsFunction: a.completeTasks,
	}
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, args []string) error {
		var errs []error
		p := a.print("TASK", "WHY", "SUBSTATUS", "SINCE", "EXPLANATION")
		explained := 0
		for _, id := range args {
			e, err := client.Explain(ctx, events.TaskID(id))
			if err != nil {
				errs = append(errs, orForgotten(err))
				continue
			}
			explained++
			errs = append(errs, p.Row(e, e.Task, e.Why, substatus(e.Substatus), output.Time(e.Since), localTimes(e.Text)))
		}
		if explained > 0 {
			errs = append(errs, p.Flush())
		}
		return errors.Join(errs...)
	})
}

// namedTime matches a time that an explanation names itself; those in what users have written stay as they are.
var namedTime = regexp.MustCompile(`(due at|ended by|the deadline,) ([0-9T:.-]+Z)`)

// localTimes writes the times that an explanation names as tables do, in local time.
func localTimes(text string) string {
	return namedTime.ReplaceAllStringFunc(text, func(match string) string {
		found := namedTime.FindStringSubmatch(match)
		at, err := time.Parse(time.RFC3339, found[2])
		if err != nil {
			return match
		}
		return found[1] + " " + output.Time(events.MillisOf(at))
	})
}

// substatus is the word, "-" where it is not known.
func substatus(s task.Substatus) string {
	if s == 0 {
		return "-"
	}
	return s.String()
}

func (a *app) nodesCommand() *cobra.Command {
	c := &cobra.Command{Use: "nodes", Short: "List the nodes that are present", Args: flags.NoArguments,
		Long: `Nodes lists every node that has joined and not left. One that has died is listed until its session's time to live
(serve --ttl) is over. CLOCK tells how far a node's clock is off those of the others, if that is more than a second; of two
nodes nobody knows which one is right.`}
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) error {
		nodes, err := client.Nodes(ctx)
		if err != nil {
			return err
		}
		p := a.print("NODE", "SESSION", "SLOTS", "OWNER", "DRAINING", "JOINED", "CLOCK", "BEHAVIORS")
		for _, n := range nodes {
			v := view.OfNode(n)
			joined, clock := output.Time(events.Millis(n.Joined)), view.Clock(v.ClockAheadMs)
			err := p.Row(v, v.Name, v.Session, v.Slots, v.Owner, v.Draining, joined, clock, strings.Join(v.Behaviors, " "))
			if err != nil {
				return err
			}
		}
		return p.Flush()
	})
}

func (a *app) settingsCommand() *cobra.Command {
	c := &cobra.Command{Use: "settings", Short: "Show what is set for the whole cluster: the behaviors that are paused, why, by whom and since when", Args: flags.NoArguments,
		Long: `Settings lists the behaviors whose tasks do not start, because somebody paused them. replay --record settings shows what was set
before.`}
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) error {
		s, err := client.Settings(ctx)
		if err != nil {
			return err
		}
		p := a.print("PAUSED", "SINCE", "BY", "REASON")
		for _, pause := range s.Paused {
			if err := p.Row(pause, pause.Behavior, output.Time(pause.Since), pause.By, pause.Reason); err != nil {
				return err
			}
		}
		return p.Flush()
	})
}

func (a *app) shardsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "shards",
		Short: "Show who owns the shards, what they hold, and what does not work",
		Long: `Shards shows of each shard the number of its last entry, of the first one that is still in the store,
of the entry that the newest snapshot covers, and of the last one that was read back from the archive; - stands for
none, or not known. DURABILITY is shown of a store in files, and LOSSES where a shard has ever lost entries or given
some up: how often; verify tells which. PROBLEM tells why a shard is not served, or what works no more in one that is:
that new tasks are refused, that its journal is not trimmed, or that commands were refused because of a bug. A shard
whose owner has not answered after 3 seconds is shown with that as its PROBLEM: when its node has died, another one
takes it within the session's time to live (serve --ttl) and a second.`,
		Args: flags.NoArguments,
	}
	return a.clientCommand(c, never, func(ctx context.Context, client operations.Client, _ []string) error {
		return a.showShards(ctx, client)
	})
}

// showShards goes on without the names of nodes, and without the shards, that do not answer.
func (a *app) showShards(ctx context.Context, client operations.Observer) error {
	names := map[string]string{}
	ask, stop := context.WithTimeout(ctx, silentAfter(ctx, time.Now()))
	nodes, err := client.Nodes(ask)
	stop()
	if err != nil {
		fmt.Fprintf(a.Err, "the names of nodes are not known: %v\n", err)
	}
	for _, n := range nodes {
		names[n.ID] = n.Name
	}
	ask, stop = context.WithTimeout(ctx, silentAfter(ctx, time.Now()))
	defer stop()
	shards, err := client.Shards(ask)
	if err != nil {
		return err
	}
	if err := noNode(shards); err != nil {
		return err
	}
	columns := []string{"SHARD", "OWNER", "ENTRIES", "FIRST", "SNAPSHOT", "ARCHIVED", "TASKS", "LIVE", "READY", "PROBLEM"}
	inFiles := slices.ContainsFunc(shards, func(s engine.ShardInfo) bool { return s.Durability != "" })
	if inFiles {
		columns = slices.Insert(columns, len(columns)-1, "DURABILITY")
	}
	lost := slices.ContainsFunc(shards, func(s engine.ShardInfo) bool { return s.Losses > 0 })
	if lost {
		columns = slices.Insert(columns, len(columns)-1, "LOSSES")
	}
	p := a.print(columns...)
	for _, s := range shards {
		s.NodeName = cmp.Or(names[s.Owner], store.NodeName(s.Owner))
		entries, tasks, live, ready := fmt.Sprint(s.Entries), fmt.Sprint(s.Tasks), fmt.Sprint(s.Live), fmt.Sprint(s.Ready)
		s.Degraded = cmp.Or(s.Degraded, bugs(s.Bugs))
		if s.Problem != "" { // no owner has told them
			entries, tasks, live, ready = "-", "-", "-", "-"
		}
		cells := []any{s.Shard, view.Owner(s.NodeName, s.Owner), entries, known(s.First), known(s.Snapshot), known(s.Archived), tasks, live, ready,
			cmp.Or(s.Problem, s.Degraded)}
		if inFiles {
			cells = slices.Insert(cells, len(cells)-1, any(s.Durability))
		}
		if lost {
			cells = slices.Insert(cells, len(cells)-1, any(s.Losses))
		}
		if err := p.Row(s, cells...); err != nil {
			return err
		}
	}
	if err := p.Flush(); err != nil {
		return err
	}
	if text := crowded(shards); text != "" {
		fmt.Fprintf(a.Err, "%s: %s\n", a.Name, text)
	}
	return nil
}

// crowdedTasks is the number of tasks from which on it is told that one shard has most of them.
const crowdedTasks = 1000

// crowded says that one shard has most of the tasks, which is most often due to ids of one affinity; "" = none has.
func crowded(shards []engine.ShardInfo) string {
	total, most := 0, engine.ShardInfo{}
	for _, s := range shards {
		if total += s.Tasks; s.Tasks > most.Tasks {
			most = s
		}
	}
	if len(shards) < 2 || total < crowdedTasks || 2*most.Tasks <= total {
		return ""
	}
	const say = "shard %d has %d of %d tasks: those whose ids have the same text before the slash, their affinity, share a shard, " +
		"and one node runs it; leave it out where order does not matter"
	return fmt.Sprintf(say, most.Shard, most.Tasks, total)
}

// noNode is the one error of shards that all tell alike that no node is alive.
func noNode(shards []engine.ShardInfo) error {
	if slices.ContainsFunc(shards, func(s engine.ShardInfo) bool { return s.Problem != task.ErrNoNode.Error() }) {
		return nil
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, task.ErrNoNode)
}

// bugs says that commands were refused because of bugs, which the log of their owner tells; "" for none.
func bugs(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d commands were refused because of a bug: the log of the owner's node tells which", n)
}

// silentAfter returns how long the command shards waits for an answer: 3 s, or half of the time that --timeout leaves.
func silentAfter(ctx context.Context, now time.Time) time.Duration {
	const usual = 3 * time.Second
	if end, limited := ctx.Deadline(); limited {
		return min(usual, end.Sub(now)/2)
	}
	return usual
}

// known writes the number of an entry, "-" for none.
func known(entry uint64) string {
	if entry == 0 {
		return "-"
	}
	return strconv.FormatUint(entry, 10)
}
