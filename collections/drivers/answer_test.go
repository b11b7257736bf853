package drivers_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"taskledger/behaviors/builtin"
	"taskledger/collections"
	"taskledger/collections/drivers"
)

func TestAnswer_TellsWhatTheOptionsLack(t *testing.T) {
	has := []collections.Need{
		{Kind: collections.NeedProgram, Name: "sh"},
		{Kind: collections.NeedVariable, Name: "TZ"},
		{Kind: collections.NeedVariable, Name: "REGION"},
		{Kind: collections.NeedDriver, Name: "stripe"},
		{Kind: collections.NeedZone, Name: "Europe/Berlin"},
		{Kind: collections.NeedRoot},
		{Kind: collections.NeedFiles},
	}
	lacks := []collections.Need{
		{Kind: collections.NeedProgram, Name: "date"},
		{Kind: collections.NeedProgram, Name: "there-is-no-such-program"}, // though it is allowed
		{Kind: collections.NeedVariable, Name: "PASSWORD"},
		{Kind: collections.NeedDriver, Name: "paypal"},
		{Kind: collections.NeedZone, Name: "Atlantis/Poseidonis"},
		{Kind: "unheard-of"},
	}
	answer := drivers.Answer(drivers.Options{
		Exec:  builtin.ExecOptions{Allow: []string{"sh", "there-is-no-such-program"}, Env: []string{"REGION"}},
		Files: builtin.ChecksumOptions{Root: "/in"},
		Root:  "/out",
		Go:    map[string]drivers.Driver{"stripe": driver(nil)},
	})
	if got := ask(t, answer, slices.Concat(has, lacks)); !slices.Equal(got, lacks) {
		t.Errorf("lacks %v, want %v", got, lacks)
	}
	nothing := drivers.Answer(drivers.Options{})
	for _, n := range []collections.Need{has[0], has[2], has[3], has[5], has[6]} {
		if got := ask(t, nothing, []collections.Need{n}); !slices.Equal(got, []collections.Need{n}) {
			t.Errorf("a node that was given nothing has %s", n)
		}
	}
	if _, err := nothing(t.Context(), []byte("{")); err == nil {
		t.Error("what is no question is answered")
	}
}

// ask returns what an answer lists.
func ask(
	t *testing.T, answer func(context.Context, []byte) ([]byte, error), needs []collections.Need) []collections.Need {
	t.Helper()
	text, err := json.Marshal(needs)
	must(t, err)
	text, err = answer(t.Context(), text)
	must(t, err)
	lacks, err := collections.ReadNeeds(text)
	must(t, err)
	return lacks
}
