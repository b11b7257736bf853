package cli

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/mirror"
	"taskledger/cmd/node/internal/mirror/trees"
)

// maxProcesses bounds the processes that a mirror waits for.
const maxProcesses = 64

const mirrorHelp = `Mirror makes the directory DST equal to SRC, as a partitioned work. It runs three nodes on etcd
and NATS in this process, for you alone; --join adds one more process of this machine. Each but the first may die:
others do its part.

Files and symbolic links are copied where they differ, by their size and SHA-256: to NAME.RANDOM.part beside their
place, which is synced and then renamed. Files and directories keep permissions and times, but not owners, the setuid,
setgid and sticky bits, and hard links. Then what SRC does not have is deleted. Named pipes, sockets and devices are
left out. Nothing is written outside of DST, and no link is followed.

With --max-deletes what would be deleted is counted first: if there are more files, links and directories than that,
nothing is changed, and the exit code is 1. It is 1, too, if something could not be mirrored, which is named then; the
rest is done. A directory that cannot be read is one of those, and nothing in its place is deleted.

On standard error it names its task and the directory of its cluster, and tells every few seconds how far it has come.
At the end it prints "copied N", files and links, and "deleted N", files, links and directories: exactly, whichever
process has died, or "N at most" of trees so large that not every permit could be remembered; and "failed N" if
something could not be mirrored. With --output json that is one object. What a killed mirror has left behind, the next
one completes or removes.

With --follow it goes on then: about once a second it looks what has changed in SRC, and brings it into DST within
seconds, until it is interrupted, which is its good end. What fails is tried again, and counts as failed though it
succeeds later. The counts may be too high by what was under way in processes that died. Files are found by the time
at which they were changed: clocks of file servers may be two seconds apart. With --data it goes on where it was, also
with what has changed meanwhile. --max-deletes limits the deletions of the mirror, and again those of all that
follows.`

func (a *app) mirrorCommand() *cobra.Command {
	cfg := mirror.Config{
		Out: a.Out,
		Err: a.Err,
		Log: slog.New(slog.DiscardHandler),
	}
	var maxDeletes int64
	c := &cobra.Command{
		Use:   "mirror SRC DST",
		Short: "Make a directory equal to another one, as a work on several nodes",
		Long:  mirrorHelp,
		Args:  flags.Arguments,
	}
	f := c.Flags()
	f.StringVar(&cfg.Join, "join", "", "`directory` of a running mirror of SRC to DST, to be one more process of it")
	f.BoolVar(&cfg.Follow, "follow", false, "once DST is equal, keep it so until an interrupt")
	f.StringVar(&cfg.Dir, "data", "",
		"`directory` of etcd and NATS, where an interrupted mirror goes on (default a temporary one)")
	f.IntVar(&cfg.Processes, "processes", 1, "processes, with this one, that have to be there before it begins")
	f.Int64Var(&cfg.Limits.Workers, "workers", trees.DefaultWorkers, "workers on all nodes")
	f.Int64Var(&cfg.Limits.Threads, "threads", trees.DefaultThreads, "files at once of each worker")
	f.Int64Var(&maxDeletes, "max-deletes", 0, "most files, links and directories to delete (default any number)")
	f.Lookup("max-deletes").DefValue = "0" // the help prints no default that is 0, and here 0 is a limit
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkMirror(f, &cfg); err != nil {
			return err
		}
		if f.Changed("max-deletes") {
			if maxDeletes < 0 {
				return &exitcode.UsageError{Problem: fmt.Sprintf("--max-deletes %d: want 0 or more", maxDeletes)}
			}
			cfg.Limits.MaxDeletes = &maxDeletes
		}
		if cfg.Join != "" && !f.Changed("workers") && !f.Changed("threads") && !f.Changed("max-deletes") {
			cfg.Limits = trees.Limits{}
		}
		cfg.Source, cfg.Target = args[0], args[1]
		cfg.JSON = a.print().IsJSON()
		cfg.Invite = func(dir string, of trees.Params) string {
			return a.command("mirror", "--join", dir, of.Source, of.Target)
		}
		return mirror.Run(cmd.Context(), cfg)
	}
	return c
}

// checkMirror returns an error if flags do not go together, or are out of their ranges.
func checkMirror(f *pflag.FlagSet, cfg *mirror.Config) error {
	for _, first := range []string{"data", "processes", "follow"} {
		if cfg.Join != "" && f.Changed(first) {
			const say = "--join names the directory of a running mirror, whose first process has been given --%[1]s: " +
				"leave out --%[1]s"
			return &exitcode.UsageError{Problem: fmt.Sprintf(say, first)}
		}
	}
	return cmp.Or(
		between("workers", cfg.Limits.Workers, 1, trees.MaxWorkers),
		between("threads", cfg.Limits.Threads, 1, trees.MaxThreads),
		between("processes", int64(cfg.Processes), 1, maxProcesses))
}

func between(flag string, n, least, most int64) error {
	if n < least || n > most {
		return &exitcode.UsageError{Problem: fmt.Sprintf("--%s %d: want %d to %d", flag, n, least, most)}
	}
	return nil
}
