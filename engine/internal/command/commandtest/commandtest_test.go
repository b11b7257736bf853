package commandtest_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"taskledger/engine/internal/command/commandtest"
	"taskledger/engine/internal/commands"
	"taskledger/events"
)

// numbers are the fields without a type of their own that have a limit.
var numbers = []string{"Priority", "MaxAttempts", "MaxLost", "RetainCount", "Timeout", "LostDelay", "Base", "Max", "Retain", "Existing", "Every", "Delay"}

// texts names every text, list, time and priority in values of a type, and every field of a policy.
func texts(t reflect.Type, name string) (names []string) {
	switch t.Kind() {
	case reflect.Pointer:
		return texts(t.Elem(), name)
	case reflect.Struct:
		for i := range t.NumField() {
			names = append(names, texts(t.Field(i).Type, name+"."+t.Field(i).Name)...)
		}
	case reflect.Slice:
		return append(texts(t.Elem(), name+"[0]"), name)
	case reflect.String, reflect.Map:
		return []string{name}
	}
	if t == reflect.TypeFor[events.Millis]() || slices.Contains(numbers, name[strings.LastIndex(name, ".")+1:]) {
		return []string{name}
	}
	return names
}

func TestOversized_GrowsEveryFieldWithALimit(t *testing.T) {
	for op := uint64(1); op < commandtest.Count(); op++ {
		command := reflect.TypeOf(commands.Table.New(op)).Elem()
		want := texts(command, command.Name())
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(commandtest.Oversized(op))); !slices.Equal(got, want) {
			t.Errorf("of command %d grow %q, want %q", op, got, want)
		}
	}
}
