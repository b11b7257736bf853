package outcome

import (
	"encoding/json"
	"strconv"
	"time"

	"taskledger/events"
)

// maxPublicResult is the size of a result that a public message carries.
const maxPublicResult = 64 << 10

// CloudEvents writes the public messages of the outcomes of a shard.
type CloudEvents struct {
	Source string
	Shard  int

	at   events.Millis // the moment that time shows
	time []byte        // the outcomes of an entry share it
}

// Append appends the public message of an outcome: a CloudEvents 1.0 JSON document. Ids and behaviors need no
// escaping; what users wrote does.
func (w *CloudEvents) Append(dst []byte, o *Outcome) []byte {
	if w.time == nil || o.At != w.at {
		w.at, w.time = o.At, o.At.Time().AppendFormat(w.time[:0], time.RFC3339Nano)
	}
	dst = append(dst, `{"specversion":"1.0","id":"`...)
	dst = events.Position{Shard: uint16(w.Shard), Ref: o.Ref}.Append(dst)
	dst = append(dst, `","source":"`...)
	dst = append(dst, w.Source...)
	dst = append(dst, `","type":"taskledger.task.completed","subject":"`...)
	dst = append(dst, o.Task...)
	dst = append(dst, `","time":"`...)
	dst = append(dst, w.time...)
	dst = append(dst, `","datacontenttype":"application/json","data":{"task":"`...)
	dst = append(dst, o.Task...)
	dst = append(dst, `","behavior":"`...)
	dst = append(dst, o.Behavior...)
	dst = append(dst, `","status":"`...)
	dst = append(dst, o.Status.String()...)
	dst = append(dst, `","run":`...)
	dst = strconv.AppendUint(dst, uint64(o.Run), 10)
	dst = append(dst, `,"attempt":`...)
	dst = strconv.AppendUint(dst, uint64(o.Attempt), 10)
	if o.Node != "" {
		dst = appendText(append(dst, `,"node":`...), o.Node)
	}
	if o.Err != nil {
		dst = append(dst, `,"error":`...)
		dst = appendJSON(dst, o.Err)
		if o.Elided {
			dst = append(dst, `,"error_cut":true`...)
		}
	}
	if text, err := o.Result.JSON(); err == nil && text != nil {
		if len(text) > maxPublicResult {
			dst = append(dst, `,"result_omitted":true`...)
		} else {
			dst = append(append(dst, `,"result":`...), text...)
		}
	}
	return append(dst, "}}"...)
}

// appendText is appendJSON of a text, cheaper where nothing in it needs escaping.
func appendText(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return appendJSON(dst, text)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

func appendJSON(dst []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // strings always marshal
		return append(dst, "null"...)
	}
	return append(dst, text...)
}
