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
		if err := writeArray(&whole, before, page); err != nil {
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
	for ; ; before = "," {
		if len(page) > 0 || before != "," {
			if err := writeArray(w, before, page); err != nil {
				return err
			}
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

// writeArray writes the elements of a page behind the text before them.
func writeArray(w io.Writer, before string, page []any) error {
	var b bytes.Buffer
	b.WriteString(before)
	for i, v := range page {
		if i > 0 {
			b.WriteByte(',')
		}
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		b.Write(data)
	}
	_, err := w.Write(b.Bytes())
	return err
}
