package sync

import (
	"encoding/json"
	"net/http"
	"strconv"

	"taskledger/api"
	"taskledger/api/problem"
)

// Failure tells what is wrong with a request: it has problem details (RFC 9457), and the two keys that clients of
// EventNative read.
type Failure struct {
	problem.Problem
	Message string `json:"message"` // the detail, or the title
	Error   string `json:"error"`   // the title
}

// ErrorFormat returns the form of errors below Root, whatever refuses a request, and the places where clients of
// EventNative put their secret: the header X-Admin-Token, and on a listener of its own the parameter token.
func ErrorFormat() api.ErrorFormat {
	return api.ErrorFormat{
		Path:         Root + "/",
		Type:         problem.ContentType,
		Out:          Failure{},
		Refuse:       refuse,
		SecretHeader: "X-Admin-Token",
		SecretParam:  "token",
	}
}

func refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	told := *p
	if told.Status == http.StatusGatewayTimeout { // clients know 503 for an owner that has not answered
		told.Status, told.RetryAfter = http.StatusServiceUnavailable, max(told.RetryAfter, 1)
	}
	h := w.Header()
	h.Set("Content-Type", problem.ContentType)
	if told.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(told.RetryAfter, 10))
	}
	w.WriteHeader(told.Status)
	f := Failure{Problem: told, Message: p.Error(), Error: p.Title}
	_ = json.NewEncoder(w).Encode(f) // it fails when the client has gone
}
