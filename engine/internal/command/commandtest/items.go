package commandtest

import (
	"bytes"
	"slices"
	"strings"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/item"
)

// Texts and numbers of items of the largest size.
var (
	storeName = strings.Repeat("s", events.MaxStoreBytes)
	group     = strings.Repeat("g", events.MaxGroupBytes)
	itemKey   = strings.Repeat("k", item.MaxKeyBytes)
)

const number = int64(item.MaxNumber)

// itemForms is Largest for the commands of items; nil for any other.
func itemForms(op uint64) []command.Command {
	switch commands.Table.New(op).(type) {
	case *stores.Update:
		many := stores.Update{
			Store:   storeName,
			Client:  number,
			Key:     itemKey,
			Depends: slices.Repeat([]int64{number}, item.MaxIDs-3),
			Deletes: []int64{number},
			Changes: []stores.Change{{
				ID:    number - 1,
				Group: group,
				At:    int64(item.MaxTime),
				Data:  []byte{1},
			}},
		}
		rest := item.MaxBytes - item.MaxIDs*item.ItemBytes - len(group) - 1
		many.Adds = []stores.Add{{Group: group, At: int64(item.MaxTime), Data: data(rest)}}
		largest := data(item.MaxBytes - item.ItemBytes - len(group))
		adds := stores.Update{
			Store:  storeName,
			Client: number,
			Key:    itemKey,
			Adds:   []stores.Add{{Group: group, At: int64(item.MaxTime), Data: largest}},
		}
		return []command.Command{&many, &adds}
	case *stores.Claim:
		return []command.Command{&stores.Claim{
			Store:    storeName,
			Client:   number,
			Key:      itemKey,
			Group:    group,
			Duration: int64(item.MaxDuration),
			Random:   1<<64 - 1,
			Depends:  slices.Repeat([]int64{number}, item.MaxIDs),
		}}
	case *stores.Read:
		ids := slices.Repeat([]int64{number}, stores.MaxItems)
		return []command.Command{&stores.Read{Store: storeName, IDs: ids, Linear: true}}
	case *stores.Page:
		return []command.Command{&stores.Page{
			Store:  storeName,
			Group:  group,
			After:  number,
			Limit:  1<<63 - 1,
			Owned:  true,
			Linear: true,
		}}
	case *stores.Groups:
		return []command.Command{&stores.Groups{Store: storeName, After: group, Linear: true}}
	case *stores.Await:
		return []command.Command{&stores.Await{
			Store:  storeName,
			Group:  group,
			Sender: name,
			Count:  1<<63 - 1,
		}}
	}
	return nil
}

func data(n int) []byte { return bytes.Repeat([]byte{1}, n) }
