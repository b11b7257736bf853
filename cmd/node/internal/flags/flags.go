// Package flags reads the flags and arguments that commands have in common, and refuses values that cannot be meant.
package flags

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/events"
)

const mayBeEmpty = "may be empty"

// MayBeEmpty has NotEmpty take a flag without a value, which means something there. The set has the flag.
func MayBeEmpty(set *pflag.FlagSet, name string) {
	if err := set.SetAnnotation(name, mayBeEmpty, []string{}); err != nil {
		panic(err)
	}
}

// NotEmpty refuses a flag that was given without a value, as by "$ID" of a variable that is not set: what would be done
// by default is not what its user means. Lists refuse that themselves.
func NotEmpty(set *pflag.FlagSet) (err error) {
	set.VisitAll(func(f *pflag.Flag) {
		_, may := f.Annotations[mayBeEmpty]
		if err == nil && f.Changed && f.Value.String() == "" && !may {
			err = &exitcode.UsageError{Problem: fmt.Sprintf("--%s is empty: leave it out for the default", f.Name)}
		}
	})
	return err
}

// list is a flag that may be given again and again, each time with items that are not empty.
type list struct {
	pflag.Value
	pflag.SliceValue
}

// ListVar defines a flag of a list.
func ListVar(f *pflag.FlagSet, to *[]string, name, usage string) {
	f.StringSliceVar(to, name, nil, usage)
	flag := f.Lookup(name)
	flag.DefValue = "" // the help would show brackets
	flag.Value = list{flag.Value, flag.Value.(pflag.SliceValue)}
}

// TextsVar defines a flag that may be given again and again, each time with one text, in which commas mean nothing.
func TextsVar(f *pflag.FlagSet, to *[]string, name, usage string) {
	f.StringArrayVar(to, name, nil, usage)
	flag := f.Lookup(name)
	flag.DefValue = "" // the help would show brackets
	flag.Value = list{flag.Value, flag.Value.(pflag.SliceValue)}
}

func (l list) Set(text string) error {
	before := len(l.GetSlice())
	if err := l.Value.Set(text); err != nil {
		return err
	}
	if added := l.GetSlice()[before:]; len(added) == 0 || slices.Contains(added, "") {
		return errors.New("it is empty, or an item of it is: leave it out for the default")
	}
	return nil
}

// saying is a flag that says in its own words what it wants.
type saying struct {
	pflag.Value
	want string
}

func (s saying) Set(text string) error {
	if s.Value.Set(text) != nil {
		return errors.New("want " + s.want)
	}
	return nil
}

// Say has a flag say which values it wants when it refuses one.
func Say(f *pflag.FlagSet, name, want string) {
	flag := f.Lookup(name)
	flag.Value = saying{flag.Value, want}
}

// Plain says in plain words what a flag wants that could not read its value.
func Plain(err error) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is {
		return err
	}
	want := map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0 on", "duration": "a duration such as 90s",
		"bool": "true or false"}[invalid.GetFlag().Value.Type()]
	if _, says := invalid.GetFlag().Value.(saying); says || want == "" {
		return err
	}
	return fmt.Errorf("--%s %s: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}

// exclusive matches what cobra says of flags that exclude each other.
var exclusive = regexp.MustCompile(`^if any flags in the group .* none of the others can be; \[(.*)\] were all set$`)

// Alone says in plain words that flags were given together that exclude each other.
func Alone(err error) error {
	given := exclusive.FindStringSubmatch(err.Error())
	if given == nil {
		return err
	}
	return fmt.Errorf("--%s: want one of them alone", strings.Join(strings.Fields(given[1]), " and --"))
}

// LevelVar defines the flag of a level of logs.
func LevelVar(f *pflag.FlagSet, to *slog.Level, level slog.Level) {
	const all = "debug, info, warn or error"
	f.TextVar(to, "log-level", level, "least `level` to log on standard error: "+all)
	Say(f, "log-level", all)
}

// Arguments accepts one argument for each word of the command's usage. A word in brackets is optional, and a last word
// with dots stands for one or more. Its error names the words.
func Arguments(cmd *cobra.Command, args []string) error {
	words := strings.Fields(cmd.Use)[1:]
	least := len(words)
	for i, word := range words {
		if strings.HasPrefix(word, "[") {
			least = min(least, i)
		}
	}
	more := strings.HasSuffix(words[len(words)-1], "...")
	if len(args) >= least && (more || len(args) <= len(words)) {
		return nil
	}
	got := fmt.Sprintf("%d arguments", len(args))
	if len(args) == 1 {
		got = "1 argument"
	}
	return fmt.Errorf("%s: want %s, got %s", cmd.Name(), strings.Join(words, " "), got)
}

// NoArguments refuses any argument, of a command that has no commands below it.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s: want no arguments, got %q", cmd.Name(), args[0])
}

// Reach says whether a duration that is given in place of a time reaches back or ahead.
type Reach int

const (
	Ago     Reach = -1
	FromNow Reach = 1
)

// Time reads a time, the zero one from nothing: as tables show it, which is RFC 3339, or a duration such as 10m, so
// long ago or from now. what names the flag or the argument. Stored, the beginning of 1970 is none, so that a time has
// to be after it.
func Time(what, text string, r Reach) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	now := time.Now()
	at, err := time.Parse(time.RFC3339, text)
	if length, bad := time.ParseDuration(text); bad == nil && length >= 0 {
		at, err = now.Add(time.Duration(r)*length), nil
	}
	if err != nil {
		const say = "%s %.40s: want a time such as %s, or a duration such as 10m, %s"
		how := map[Reach]string{Ago: "so long ago", FromNow: "from now on"}[r]
		return time.Time{}, &exitcode.UsageError{Problem: fmt.Sprintf(say, what, text, now.Format(time.RFC3339), how)}
	}
	if events.MillisOf(at) <= 0 {
		return time.Time{}, &exitcode.UsageError{Problem: fmt.Sprintf("%s %s: want a time after 1970-01-01T00:00:00Z", what, text)}
	}
	return at, nil
}
