package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
)

// Array answers a route of class Pages with an array, as long as there are more pages. before and after are the JSON
// around its elements, such as "[" and "]". One page is an answer like others; more of them are a stream.
func (c *Call) Array(before, after string, next func() (page []any, more bool, err error)) error {
	page, more, err := next()
	if err != nil {
		return err
	}
	if !more {
		var whole bytes.Buffer
		if _, err := writeElements(&whole, before, page); err != nil {
			return err
		}
		whole.WriteString(after)
		return c.JSON(http.StatusOK, json.RawMessage(whole.Bytes()))
	}
	w, end, done, err := c.Stream()
	if err != nil {
		return err
	}
	defer done()
	for {
		if before, err = writeElements(w, before, page); err != nil {
			return err
		}
		if !more {
			break
		}
		if page, more, err = next(); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, after+"\n")
	return cmp.Or(err, end())
}

// writeElements writes the elements of a page, and before them what stands before the first one. It returns what
// stands before the next one.
func writeElements(w io.Writer, before string, page []any) (next string, err error) {
	var b bytes.Buffer
	if before != "," {
		b.WriteString(before)
		before = ""
	}
	for _, v := range page {
		data, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		b.WriteString(before)
		b.Write(data)
		before = ","
	}
	_, err = w.Write(b.Bytes())
	return before, err
}
