package cli

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/suggest"
)

// newRoot returns the program as a user meets it, with flags that nobody has set.
func newRoot() *cobra.Command { return (&app{Program: Program{Name: "node"}}).root() }

func TestCommands_EachHasExamplesThatAreTaken(t *testing.T) {
	t.Parallel()
	met := map[string]bool{}
	eachCommand(newRoot(), func(c *cobra.Command, path string) {
		met[path] = true
		if len(examplesOf[path]) == 0 || c.Example == "" {
			t.Errorf("%q has no example", path)
		}
	})
	for path, all := range examplesOf {
		if !met[path] {
			t.Errorf("%q has examples, and there is no such command", path)
		}
		for _, e := range all {
			c, rest, err := newRoot().Find(e.args)
			if err == nil {
				err = c.ParseFlags(rest)
			}
			if err == nil {
				err = c.ValidateArgs(c.Flags().Args())
			}
			if err == nil {
				err = c.ValidateFlagGroups()
			}
			if err != nil {
				t.Errorf("the example %q of %q is refused: %v", e.args, path, err)
			}
		}
	}
}

func TestHelp_ShowsTheFlagsOfEachCommandBeforeThoseThatReachTheCluster(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(), func(c *cobra.Command, path string) {
		first, behind, _ := strings.Cut(c.UsageString(), "\nTo reach the cluster:\n")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, reaches := f.Annotations[reaching]
			line := regexp.MustCompile(`(?m)^(      |  -\w, )--` + f.Name + `(\[| |$)`)
			if !f.Hidden && (line.MatchString(first) == reaches || line.MatchString(behind) != reaches) {
				t.Errorf("%q: --%s is among the wrong flags", path, f.Name)
			}
		})
	})
}

// kind returns what a flag takes, in one word.
func kind(f *pflag.Flag) string {
	switch is := f.Value.Type(); {
	case is == "bool" || is == "duration":
		return is
	case strings.HasPrefix(is, "int") || strings.HasPrefix(is, "uint") || strings.HasPrefix(is, "float"):
		return "number"
	}
	return "text"
}

// eachFlag calls do for the flags of a command that help shows, also those that all commands have.
func eachFlag(c *cobra.Command, do func(f *pflag.Flag)) {
	_ = c.LocalFlags() // adds those of the commands above
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			do(f)
		}
	})
}

func TestFlags_OfOneNameTakeTheSameInAllCommands(t *testing.T) {
	t.Parallel()
	kinds, at := map[string]string{}, map[string]string{}
	eachCommand(newRoot(), func(c *cobra.Command, path string) {
		eachFlag(c, func(f *pflag.Flag) {
			if was, known := kinds[f.Name]; known && was != kind(f) {
				t.Errorf("--%s takes a %s at %q and a %s at %q", f.Name, was, at[f.Name], kind(f), path)
			}
			kinds[f.Name], at[f.Name] = kind(f), path
		})
	})
	if len(kinds) < 100 {
		t.Errorf("%d flags were looked at", len(kinds))
	}
}

// free has the flags whose values nobody can list, by the reason.
var free = map[string][]string{
	"shells complete files and directories": {
		"api-cert", "api-key", "api-tokens", "batch", "checkpoint", "checksum-root", "config", "data", "etcd-ca",
		"etcd-cert", "etcd-key", "etcd-password-file", "file", "join", "nats-ca", "nats-cert", "nats-creds", "nats-key",
		"nats-nkey", "nats-password-file", "out", "signing-key", "sync", "sync-root",
	},
	"it takes an address": {
		"api", "api-host", "api-origin", "etcd", "metrics", "nats", "store-listen", "sync-listen",
	},
	"it takes a time": {
		"at", "created-from", "created-to", "deadline", "end", "ended-from", "ended-to", "since", "start", "until",
	},
	"it takes a place in a list that was printed": {"after", "cursor"},
	"it takes a text of the user's own": {
		"cluster", "cron", "etcd-user", "exec-allow", "exec-env", "expect-cluster", "id", "key", "name", "nats-user", "params",
		"prefix", "reason", "store-name", "token", "trust",
	},
}

// completed are the flags that have values in one command and, under the same name, none in another.
var completed = []string{"affinity-prefix"}

func TestCompletion_KnowsTheValuesOfEveryFlagOfAClosedSet(t *testing.T) {
	t.Parallel()
	met := map[string]bool{}
	all := slices.Concat(slices.Collect(maps.Values(free))...)
	otherwise := []string{"concurrency", "filter", "shards", "timezone"} // help says in other words what they take
	eachCommand(newRoot(), func(c *cobra.Command, path string) {
		c.SetContext(t.Context())
		eachFlag(c, func(f *pflag.Flag) {
			completes, has := c.GetFlagCompletionFunc(f.Name)
			if !has {
				met[f.Name] = true
				if kind(f) == "text" && !slices.Contains(all, f.Name) && !slices.Contains(completed, f.Name) {
					t.Errorf("%q: --%s has no completion", path, f.Name)
				}
				return
			}
			words, _ := completes(c, nil, "")
			for _, word := range words {
				if !strings.Contains(f.Usage, word) && !slices.Contains(otherwise, f.Name) {
					t.Errorf("%q: --%s completes %s, of which help does not tell", path, f.Name, word)
				}
			}
		})
	})
	for _, name := range all {
		if !met[name] {
			t.Errorf("--%s has a completion, or is no flag", name)
		}
	}
}

func TestCompletion_KnowsWhatCommandsAreAbout(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(), func(c *cobra.Command, path string) {
		for _, word := range []string{"ID", "NAME", "BEHAVIOR", "GROUP", "SOURCE"} {
			if strings.Contains(c.Use, word) && c.ValidArgsFunction == nil && path != "token new" { // the name is a new one
				t.Errorf("%q: %s has no completion", path, word)
			}
		}
	})
}

// What other queues of tasks call it names what there is here.
func TestWords_OfOthersNameCommandsFlagsAndStatusesThatThereAre(t *testing.T) {
	t.Parallel()
	commands, flags := map[string]bool{}, map[string]bool{}
	eachCommand(newRoot(), func(c *cobra.Command, path string) {
		commands[path] = true
		eachFlag(c, func(f *pflag.Flag) { flags[f.Name] = true })
	})
	for word, meant := range suggest.Commands {
		if commands[word] || slices.ContainsFunc(meant, func(name string) bool { return !commands[name] }) {
			t.Errorf("%s: %v", word, meant)
		}
	}
	for word, meant := range suggest.Subcommands {
		for _, name := range meant {
			named := func(path string) bool { return strings.HasSuffix(path, " "+name) }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(commands)), named) {
				t.Errorf("%s: %v", word, meant)
			}
		}
	}
	for word, meant := range suggest.Flags {
		if slices.ContainsFunc(meant, func(name string) bool { return !flags[name] }) {
			t.Errorf("--%s: %v", word, meant)
		}
	}
	for word, meant := range suggest.Statuses {
		if slices.ContainsFunc(meant, func(name string) bool { return !slices.Contains(suggest.StatusNames(), name) }) {
			t.Errorf("%s: %v", word, meant)
		}
	}
	for _, word := range []string{"enqueue", "queue", "job", "jobs", "perform", "cron", "dead", "worker", "dashboard"} {
		if len(suggest.Commands[word]) == 0 {
			t.Errorf("%s is not answered", word)
		}
	}
}

func TestMain_NamesFlagsThatMayHaveBeenMeant(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"list --statsu SUCCESS":         "unknown flag: --statsu: is --status meant?",
		"list --nothinglikeit x":        "unknown flag: --nothinglikeit\n",
		"submit noop --max-retries 3":   "is --max-attempts meant?",
		"submit noop --scheduled-at 1h": "is --at meant?",
		"verify --archive":              "is --with-archive meant?",
		"replay --from 1h":              "is --since meant?",
		"schedule list --after a":       "is --cursor meant?",
		"mirror --dir m a b":            "is --data meant?",
		"checkpoint --key k":            "is --signing-key meant?",
		"serve --limit sleep=1":         "is --concurrency meant?",
		"list -q":                       "unknown shorthand flag: 'q' in -q\n",
	} {
		var out, problems bytes.Buffer
		code := Main(t.Context(), Program{Name: "node", Args: strings.Fields(typed), Out: &out, Err: &problems})
		if got := problems.String(); code != exitcode.Usage || !strings.Contains(got, want) || out.Len() > 0 {
			t.Errorf("%s: code %d, %s", typed, code, got)
		}
	}
}
