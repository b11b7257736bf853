package taskstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"taskledger/store"
)

// maxFailureError bounds the bytes of an error that a failure keeps.
const maxFailureError = 1 << 10

// Failure is an item that a worker has given up. The data of its item are a line of JSON,
// {"group":...,"claims":...,"error":...}, and behind it the data as they were.
type Failure struct {
	Group  string `json:"group"`  // where it was
	Claims int64  `json:"claims"` // how often it was claimed
	Error  string `json:"error"`  // the first KiB of the text of its last error
	Data   []byte `json:"-"`
}

// Encode makes the data of its item.
func (f Failure) Encode() []byte {
	f.Error = strings.ToValidUTF8(f.Error[:min(len(f.Error), maxFailureError)], "")
	line, _ := json.Marshal(f) // texts and a number always have a form
	return append(append(line, '\n'), f.Data...)
}

// ParseFailure reads what Encode writes.
func ParseFailure(data []byte) (f Failure, err error) {
	line, rest, some := bytes.Cut(data, []byte("\n"))
	if err = json.Unmarshal(line, &f); err != nil || !some {
		return Failure{}, &store.InvalidError{
			Field:   "failure",
			Problem: fmt.Sprintf("%.32q: want a line of JSON and data behind it", line),
		}
	}
	f.Data = rest
	return f, nil
}
