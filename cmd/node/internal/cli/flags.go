package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"taskledger/cmd/node/internal/exitcode"
)

// notEmpty refuses a flag that was given without a value, as by "$ID" of a variable that is not set: what would be done by
// default is not what its user means. Lists refuse that themselves.
func notEmpty(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if err == nil && f.Changed && f.Value.String() == "" {
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

func listVar(f *pflag.FlagSet, to *[]string, name, usage string) {
	f.StringSliceVar(to, name, nil, usage)
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

// timeFlag reads a time, the zero one from nothing.
func timeFlag(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &exitcode.UsageError{Problem: fmt.Sprintf("--%s %s: want a time such as %s", name, text, time.Now().UTC().Format(time.RFC3339))}
	}
	return at, nil
}
