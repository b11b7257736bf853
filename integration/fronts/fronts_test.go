package fronts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/integration/fronts"
	"taskledger/projection"
)

func read(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	return string(text), err
}

func TestFronts_HaveAllTheirParts(t *testing.T) {
	for _, problem := range fronts.Check(fronts.All, read) {
		t.Error(problem)
	}
}

// What can be asked of the tables themselves is asked: a kind without a golden file, or a record without a state, is no
// question of texts.
func TestFronts_HaveAGoldenOfEachKindAndAStateOfEachRecord(t *testing.T) {
	for _, kind := range events.Kinds() {
		if _, err := read("events/testdata/" + strings.ToLower(kind.String()) + ".golden"); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	shard := projection.NewShard(0)
	for _, of := range events.Records() {
		if of != events.OfTask && shard.State(of) == nil {
			t.Errorf("record %s has no state", of)
		}
	}
}

// A part that is taken out of its file, and a row that is taken out of the table, are each told by front and part.
func TestCheck_TellsEachPartThatIsMissing(t *testing.T) {
	for i := range fronts.All {
		f := &fronts.All[i]
		for _, part := range fronts.Parts {
			place := f.Places[part]
			told := func(problems []string) bool {
				return slices.ContainsFunc(problems, func(p string) bool {
					return strings.HasPrefix(p, f.Name+": ") && strings.Contains(p, string(part))
				})
			}
			if place.Not == "" {
				without := func(file string) (string, error) {
					text, err := read(file)
					if file == place.File {
						text = strings.ReplaceAll(text, place.Text, "")
					}
					return text, err
				}
				if !told(fronts.Check(fronts.All, without)) {
					t.Errorf("%s: %s is taken out of %s, and nothing is told", f.Name, part, place.File)
				}
			}
			delete(f.Places, part)
			if !told(fronts.Check(fronts.All, read)) {
				t.Errorf("%s: the row of %s is taken out, and nothing is told", f.Name, part)
			}
			f.Places[part] = place
		}
	}
}

func TestCheck_TellsARecordOfNoFrontAndOneOfTwo(t *testing.T) {
	without := slices.Clone(fronts.All)
	without[0].Records = []events.Record{events.OfItem, events.OfSettings}
	problems := strings.Join(fronts.Check(without, read), "\n")
	for _, want := range []string{"record forgotten is of no front", "record settings is of task stores and of settings"} {
		if !strings.Contains(problems, want) {
			t.Errorf("problems are %q, want %q", problems, want)
		}
	}
}
