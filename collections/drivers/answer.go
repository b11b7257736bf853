package drivers

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/collections"
)

// Answer returns the function by which a node with these options answers collections.Question: for
// engine.NodeConfig.Questions. Programs that the options allow are looked up now.
func Answer(o Options) func(ctx context.Context, question []byte) (answer []byte, err error) {
	programs := builtin.NewPrograms(o.Exec)
	has := func(n collections.Need) bool {
		switch n.Kind {
		case collections.NeedProgram:
			return programs.Allows(n.Name)
		case collections.NeedVariable:
			return programs.MaySet(n.Name)
		case collections.NeedDriver:
			return o.Go[n.Name] != nil
		case collections.NeedZone:
			_, err := time.LoadLocation(n.Name)
			return err == nil
		case collections.NeedRoot:
			return o.Root != ""
		case collections.NeedFiles:
			return o.Files.Root != ""
		}
		return false
	}
	return func(_ context.Context, question []byte) ([]byte, error) {
		needs, err := collections.ReadNeeds(question)
		if err != nil {
			return nil, err
		}
		return json.Marshal(slices.DeleteFunc(needs, has))
	}
}
