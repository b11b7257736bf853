package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"taskledger/api/problem"
)

// refused returns the error of an answer that is none. What is no problem comes from something before the node.
func refused(q *request, resp *http.Response, id string) error {
	p := &problem.Problem{}
	data, err := io.ReadAll(io.LimitReader(resp.Body, problemBytes))
	typed, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if err != nil || typed != problem.ContentType || json.Unmarshal(data, p) != nil {
		err := fmt.Errorf("the answer is %s, and no problem of the API", resp.Status)
		switch resp.StatusCode {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return q.lost(err)
		}
		return err
	}
	if after, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32); err == nil && p.RetryAfter == 0 {
		p.RetryAfter = max(after, 0)
	}
	if p.Type == problem.Internal {
		return fmt.Errorf("%w (the log of the node tells more of request %s)", p.Err(), id)
	}
	return p.Err()
}
