package works

import (
	"math"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/work/segmentation"
	"taskledger/work/workledger"
)

// encodeSegmentation writes a segmentation as the segments of a partition: the array
//
//	[kind, from, to, size, buckets, [alphabet ...], depth, [[kind, from, to, lower, upper, text] ...]]
//
// with all texts as bytes, since keys need not be UTF-8.
func encodeSegmentation(p *segmentation.Plan) []byte {
	var w wire.Writer
	w.Array(8)
	w.Text(string(p.Kind))
	w.Int(p.From)
	w.Int(p.To)
	w.Int(p.Size)
	w.Int(p.Buckets)
	w.Array(len(p.Alphabets))
	for _, text := range p.Alphabets {
		w.Bytes([]byte(text))
	}
	w.Int(p.Depth)
	w.Array(len(p.Explicit))
	for _, c := range p.Explicit {
		w.Array(6)
		w.Text(string(c.Kind))
		w.Int(c.From)
		w.Int(c.To)
		w.Bytes([]byte(c.Lower))
		w.Bytes([]byte(c.Upper))
		w.Bytes([]byte(c.Text))
	}
	return w.B
}

// decodeSegmentation reads what encodeSegmentation wrote, or returns why there can be no such segmentation.
func decodeSegmentation(data []byte) (p segmentation.Plan, err error) {
	if err := wire.Scan(data); err != nil {
		return p, err
	}
	r := wire.NewReader(data)
	r.ArrayOf(8)
	p.Kind, p.From, p.To, p.Size, p.Buckets = segmentation.Kind(r.Text()), r.Int(), r.Int(), r.Int(), r.Int()
	for n := r.Array(); len(p.Alphabets) < n && r.Err() == nil; {
		p.Alphabets = append(p.Alphabets, string(r.View()))
	}
	p.Depth = r.Int()
	for n := r.Array(); len(p.Explicit) < n && r.Err() == nil; {
		r.ArrayOf(6)
		p.Explicit = append(p.Explicit, segmentation.Content{
			Kind:  segmentation.Kind(r.Text()),
			From:  r.Int(),
			To:    r.Int(),
			Lower: string(r.View()),
			Upper: string(r.View()),
			Text:  string(r.View()),
		})
	}
	if err := r.Close(); err != nil {
		return segmentation.Plan{}, err
	}
	return p, p.Validate()
}

// encodeRules writes rules as a partition has them, the array [code, react, times, backoff ...] with codes as bytes;
// nil where they are nil.
func encodeRules(all []workledger.Rule) []byte {
	if all == nil {
		return nil
	}
	var w wire.Writer
	w.Array(4 * len(all))
	for _, r := range all {
		w.Bytes([]byte(r.Code))
		w.Uint(uint64(r.React))
		w.Int(r.Times)
		w.Int(int64(r.Backoff))
	}
	return w.B
}

// decodeRules reads what encodeRules wrote.
func decodeRules(data []byte) ([]workledger.Rule, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if err := wire.Scan(data); err != nil {
		return nil, err
	}
	r := wire.NewReader(data)
	n := r.Array()
	if n%4 != 0 {
		r.Fail("array of %d values of rules", n)
	}
	all := []workledger.Rule{}
	for len(all) < n/4 && r.Err() == nil {
		code, react := string(r.View()), r.Uint()
		if react > math.MaxUint8 {
			r.Fail("reaction %d", react)
		}
		all = append(all, workledger.Rule{
			Code:    code,
			React:   uint8(react),
			Times:   r.Int(),
			Backoff: time.Duration(r.Int()),
		})
	}
	return all, r.Close()
}

// encodeErrors writes the errors of a bucket as a command has them.
func encodeErrors(all []workledger.ItemError) []byte {
	errs := make([]events.ItemError, len(all))
	for i, e := range all {
		errs[i] = events.ItemError(e)
	}
	var w wire.Writer
	events.EncodeItemErrors(&w, errs)
	return w.B
}
