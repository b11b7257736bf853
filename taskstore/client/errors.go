package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"taskledger/api/stores/form"
	"taskledger/item"
	"taskledger/store"
	"taskledger/taskstore"
)

// errorOf is the error that an answer tells.
func errorOf(answer *http.Response) error {
	var told form.Errors
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil || json.Unmarshal(text, &told) != nil || len(told.Errors) == 0 {
		told.Errors = []string{answer.Status}
	}
	all := strings.Join(told.Errors, "; ")
	switch answer.StatusCode {
	case http.StatusConflict:
		conflict := &item.ConflictError{}
		for _, text := range told.Errors {
			conflict.Problems = append(conflict.Problems, problemOf(text))
		}
		return conflict
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %s", taskstore.ErrOtherRequest, all)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		field, problem, _ := strings.Cut(all, ": ")
		return &store.InvalidError{Field: field, Problem: problem}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
			return &taskstore.OverloadError{Cause: all, RetryAfter: time.Duration(seconds) * time.Second}
		}
		return fmt.Errorf("%w: %s", store.ErrUnavailable, all)
	}
	return fmt.Errorf("%s: %s", answer.Status, all)
}

// problemOf reads what item.Problem.String wrote.
func problemOf(text string) item.Problem {
	field, rest, named := strings.Cut(text, ": ")
	if !named {
		return item.Problem{Field: "request", Text: text}
	}
	number, problem, numbered := strings.Cut(strings.TrimPrefix(rest, "task "), ": ")
	if id, err := strconv.ParseInt(number, 10, 64); numbered && err == nil {
		return item.Problem{Field: field, ID: id, Text: problem}
	}
	return item.Problem{Field: field, Text: rest}
}
