package api

import (
	"strings"

	"taskledger/api/token"

	"taskledger/store"
	"taskledger/task"
)

// filterOf returns the filter of some fields, narrowed to the tasks that the token may see. It reports false where no
// task is left.
func filterOf(by *token.Token, value func(field string) string) (f task.Filter, left bool, err error) {
	names, _ := task.FilterFields()
	for _, name := range names {
		text := value(name)
		if text == "" {
			continue
		}
		if err := f.Set(name, text); err != nil {
			return f, false, invalid(name, "%s", strings.TrimPrefix(err.Error(), name+": "))
		}
	}
	if f.Node != "" && !store.IsSessionID(f.Node) {
		return f, false, invalid("node", "want the id of a session, as nodes have it")
	}
	f, left = narrowed(f, by.Prefix, by.Behaviors)
	return f, left && (f.Behavior == "" || by.MayBehavior(f.Behavior)), nil
}

// narrowed adds the limits of a token to a filter. It reports false where no task is left.
func narrowed(f task.Filter, prefix string, behaviors []string) (task.Filter, bool) {
	switch {
	case f.Affinity != "" && !strings.HasPrefix(f.Affinity, prefix):
		return f, false
	case prefix == "" || strings.HasPrefix(f.AffinityPrefix, prefix):
	case strings.HasPrefix(prefix, f.AffinityPrefix):
		f.AffinityPrefix = prefix
	default:
		return f, false
	}
	if len(behaviors) == 1 && f.Behavior == "" {
		f.Behavior = behaviors[0]
	}
	return f, true
}
