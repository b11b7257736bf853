package check

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"

	"taskledger/events"
)

// The namespaces of the UUIDs of runs, as hexadecimal digits: they are part of what is stored.
const (
	tickSpace = "52b52c5c0b3a47f3a460c28cd3089b62"
	fillSpace = "570f3a5f16d649e4a1eac75ba017ed9d"
)

// uuid returns the UUID, version 5, of a name in a namespace (RFC 9562, 5.5).
func uuid(space, name string) string {
	b, err := hex.DecodeString(space)
	if err != nil {
		panic(err) // the namespaces are constants
	}
	sum := sha1.Sum(append(b, name...))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// runOf returns the id of the run of a tick. again tells when its backfill began, 0 for the first id of a run.
func runOf(names events.RunNames, name string, of events.RunOrigin, tick, again events.Millis) events.TaskID {
	text := fmt.Sprint(int64(tick))
	if again != 0 {
		text += fmt.Sprint(":", int64(again))
	}
	prefix, space := events.TickPrefix, tickSpace
	if of == events.RunOfFill {
		prefix, space = events.FillPrefix, fillSpace
	}
	if names == events.NamesByUUID {
		return events.TaskID(name + "/" + uuid(space, name+"/"+text))
	}
	return events.TaskID(name + "/" + prefix + text)
}

// originOf returns what made a task that is a run of a schedule, by its first event; 0 = it is none.
func originOf(id events.TaskID, b *events.Created) events.RunOrigin {
	if b.Ties.Run != 0 {
		return b.Ties.Run
	}
	return events.OriginOf(id)
}
