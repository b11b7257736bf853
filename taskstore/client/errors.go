package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"taskledger/api/stores/form"
	"taskledger/taskstore"
)

// StatusError is a refusal as the server tells it, where it has no error of package taskstore; or is the cause of one.
type StatusError struct {
	Status int
	Texts  []string
}

// Error returns the status and what the server says.
func (e *StatusError) Error() string {
	return fmt.Sprintf("status %d: %s", e.Status, strings.Join(e.Texts, "; "))
}

// refused makes an error of an answer that is none.
func refused(method string, resp *http.Response, body []byte) error {
	var told form.Errors
	if json.Unmarshal(body, &told) != nil || len(told.Errors) == 0 {
		told.Errors = []string{fmt.Sprintf("%.200s", body)}
	}
	is := &StatusError{Status: resp.StatusCode, Texts: told.Errors}
	switch resp.StatusCode {
	case http.StatusConflict:
		conflict := &taskstore.ConflictError{}
		for _, text := range told.Errors {
			conflict.Problems = append(conflict.Problems, problemOf(text))
		}
		return conflict
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		field, problem, named := strings.Cut(told.Errors[0], ": ")
		if !named {
			field, problem = "request", told.Errors[0]
		}
		return &taskstore.InvalidError{Field: field, Problem: problem}
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %w", taskstore.ErrOtherRequest, is)
	case http.StatusTooManyRequests:
		seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16) // 0 where it says none
		return &taskstore.OverloadError{Cause: is.Error(), RetryAfter: time.Duration(seconds) * time.Second}
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return lost(method, is)
	}
	return is
}

// problemOf reads what Problem.String has written.
func problemOf(text string) taskstore.Problem {
	field, rest, named := strings.Cut(text, ": ")
	if !named {
		return taskstore.Problem{Text: text}
	}
	if number, problem, is := strings.Cut(strings.TrimPrefix(rest, "task "), ": "); is && strings.HasPrefix(rest, "task ") {
		if id, err := strconv.ParseInt(number, 10, 64); err == nil {
			return taskstore.Problem{Field: field, ID: id, Text: problem}
		}
	}
	return taskstore.Problem{Field: field, Text: rest}
}
