package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/events"
	"taskledger/store"
)

// encode returns a value as the body of a request.
func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return body, nil
}

// withParams adds parameters to an object, byte by byte: encoding/json would write them anew, and requests under a key
// are compared by their bytes.
func withParams(v any, params []byte) ([]byte, error) {
	body, err := encode(v)
	if err != nil || params == nil {
		return body, err
	}
	if !json.Valid(params) || !utf8.Valid(params) {
		return nil, &store.InvalidError{Field: "parameters", Problem: "they are no JSON in UTF-8"}
	}
	with := bytes.NewBuffer(make([]byte, 0, len(body)+len(params)+16))
	with.Write(body[:len(body)-1])
	if len(body) > 2 {
		with.WriteByte(',')
	}
	with.WriteString(`"params":`)
	with.Write(params)
	with.WriteByte('}')
	return with.Bytes(), nil
}

// keyed returns the header of a request under a key, nil without one.
func keyed(key string) (http.Header, error) {
	if key == "" {
		return nil, nil
	}
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if strings.TrimSpace(key) != key || strings.ContainsFunc(key, control) {
		const problem = "over HTTP a key has no space at its ends and no control character"
		return nil, &store.InvalidError{Field: "request key", Problem: problem}
	}
	return http.Header{"Idempotency-Key": {key}}, nil
}

// pathOf returns the path of a task, which has an id that is one.
func pathOf(id events.TaskID, below string) (string, error) {
	if err := id.Validate(); err != nil {
		return "", &store.InvalidError{Field: "id", Problem: err.Error()}
	}
	return "/v1/tasks/" + segmentOf(id) + below, nil
}

func segmentOf(id events.TaskID) string {
	return url.PathEscape(strings.Replace(string(id), "/", "~", 1))
}

// params collects the parameters of a query that say something.
type params struct{ url.Values }

func newParams() params { return params{url.Values{}} }

func (p params) text(name, value string) {
	if value != "" {
		p.Set(name, value)
	}
}

func (p params) number(name string, n int64) {
	if n != 0 {
		p.Set(name, strconv.FormatInt(n, 10))
	}
}

func (p params) flag(name string, is bool) {
	if is {
		p.Set(name, "true")
	}
}

func (p params) time(name string, at time.Time) {
	if !at.IsZero() {
		p.Set(name, timeText(at))
	}
}

func timeText(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
