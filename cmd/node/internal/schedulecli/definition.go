package schedulecli

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taskledger/api/shape"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/input"
	"taskledger/events"
	"taskledger/schedule"
)

// maxDefinition takes every definition, with spaces between what it says.
const maxDefinition = 2 * events.MaxScheduleParamBytes

// definition holds the flags that say a schedule.Definition, or name the file that has one.
type definition struct {
	schedule.Definition
	params, start, end string
	file               string
}

// flags defines the flags of a command that has no others yet.
func (d *definition) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&d.Cron, "cron", "", `cron expression, such as "0 30 3 * * ?" or "@every 90s" (default: none, it runs when asked to)`)
	f.StringVar(&d.Behavior, "behavior", "", "what runs: a behavior that some node has")
	f.StringVar(&d.params, "params", "", "parameters of each run, as `JSON` of at most 62 KiB")
	f.StringVar(&d.Timezone, "timezone", "", "`zone` of the IANA database, such as Europe/Berlin (default UTC)")
	f.StringVar((*string)(&d.Overlap), "overlap", "",
		"for a tick while a run goes on: forbid, allow or replace (default forbid)")
	f.StringVar((*string)(&d.Misfire), "misfire", "",
		"for ticks that nobody decided in time: once, skip or all (default once)")
	f.DurationVar(&d.Grace, "grace", 0,
		"time after which a tick that is not decided is late; 0s = at once (default 1h)")
	f.DurationVar(&d.Jitter, "jitter", 0,
		"longest time by which a tick is due late, always the same for one name; 0s = none")
	f.StringVar(&d.start, "start", "", "`time` before which no tick is, such as 2027-01-01T00:00:00Z, or 10m: from now on")
	f.StringVar(&d.end, "end", "", "`time` after which no tick is, in the same forms")
	f.Int64Var(&d.Priority, "priority", 0, "priority of the runs, 0 to 9223371 (default: the behavior's)")
	f.DurationVar(&d.Timeout, "attempt-timeout", 0, "longest time of an attempt (default: the behavior's)")
	f.IntVar(&d.Attempts, "max-attempts", 0,
		"failed attempts of a run before its failure is final (default: the behavior's)")
	f.IntVar(&d.Keep, "keep", 0, "ended runs that are kept, 0 to 1000 (default 100)")
	f.BoolVar(&d.PauseOnFailure, "pause-on-failure", false, "pause the schedule when the run of a tick fails for good")
	var others []string
	f.VisitAll(func(other *pflag.Flag) { others = append(others, other.Name) })
	f.StringVar(&d.file, "file", "", "JSON `file` with the definition instead, - for standard input")
	for _, other := range others {
		c.MarkFlagsMutuallyExclusive("file", other)
	}
}

// read returns the definition that the flags of the command say.
func (d *definition) read(ctx context.Context, c *cobra.Command, stdin io.Reader) (schedule.Definition, error) {
	is := d.Definition
	if d.file != "" {
		text, err := input.Read(ctx, "definition", d.file, stdin, maxDefinition)
		if err != nil {
			return is, err
		}
		var form schedule.Form
		if err := shape.Decode(text, &form); err != nil {
			return is, &exitcode.UsageError{Problem: "definition: " + err.Error()}
		}
		return form.Definition(), nil
	}
	if d.params != "" {
		is.Params = json.RawMessage(d.params)
	}
	if c.Flags().Changed("grace") && is.Grace == 0 {
		is.Grace = -1
	}
	if c.Flags().Changed("keep") && is.Keep == 0 {
		is.Keep = -1
	}
	var err error
	if is.Start, err = flags.Time("--start", d.start, flags.FromNow); err != nil {
		return is, err
	}
	is.End, err = flags.Time("--end", d.end, flags.FromNow)
	return is, err
}
