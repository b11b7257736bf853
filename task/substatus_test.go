package task_test

import (
	"strings"
	"testing"

	"taskledger/task"
)

func TestSubstatus_IsReadAsWrittenAndAnUnknownWordNamesThemAll(t *testing.T) {
	for _, word := range task.Substatuses() {
		var s task.Substatus
		if err := s.UnmarshalText([]byte(word)); err != nil || s.String() != word {
			t.Errorf("%s is read as %s, %v", word, s, err)
		}
	}
	for _, word := range []string{"", "none", "READY", "lostt"} {
		_, err := task.ParseSubstatus(word)
		if err == nil || !strings.HasSuffix(err.Error(), ", cancelled") ||
			!strings.Contains(err.Error(), `substatus "`+word+`": want one of ready, scheduled, `) {
			t.Errorf("%q: %v", word, err)
		}
	}
}
