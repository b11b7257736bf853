package wire_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"taskledger/internal/wire"
)

// sample holds one value of every kind and width.
func sample() *wire.Writer {
	w := new(wire.Writer)
	w.Array(9)
	w.Uint(math.MaxUint64)
	w.Int(math.MinInt64)
	w.Bool(true)
	w.Text(strings.Repeat("t", 300))
	w.Bytes(nil)
	w.Bytes([]byte{})
	w.Bytes(bytes.Repeat([]byte{7}, 70_000))
	w.Array(0)
	w.Array(16)
	for i := range 16 {
		w.Int(int64(i) - 40)
	}
	return w
}

// write draws a value, writes it and returns what a generic decoder makes of it.
func write(t *rapid.T, w *wire.Writer, depth int) any {
	kinds := 5
	if depth < 4 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		v := rapid.Uint64().Draw(t, "uint")
		w.Uint(v)
		return v
	case 1:
		v := rapid.Int64().Draw(t, "int")
		w.Int(v)
		return v
	case 2:
		v := rapid.Bool().Draw(t, "bool")
		w.Bool(v)
		return v
	case 3:
		v := strings.Repeat("x", rapid.IntRange(0, 40).Draw(t, "text"))
		w.Text(v)
		return v
	case 4:
		v := rapid.Ptr(rapid.SliceOfN(rapid.Byte(), 0, 40), true).Draw(t, "bytes")
		if v == nil {
			w.Bytes(nil)
			return nil
		}
		w.Bytes(*v)
		return *v
	}
	n := rapid.IntRange(0, 20).Draw(t, "array")
	w.Array(n)
	all := make([]any, n)
	for i := range all {
		all[i] = write(t, w, depth+1)
	}
	return all
}

// read reads a value of the kind that want has.
func read(t *rapid.T, r *wire.Reader, want any) any {
	switch v := want.(type) {
	case uint64:
		return r.Uint()
	case int64:
		return r.Int()
	case bool:
		return r.Bool()
	case string:
		return r.Text()
	case nil:
		if b := r.Bytes(); b != nil {
			t.Fatalf("Bytes = %x, want nil", b)
		}
		return nil
	case []byte:
		return r.Bytes()
	case []any:
		r.ArrayOf(len(v))
		all := make([]any, len(v))
		for i := range all {
			all[i] = read(t, r, v[i])
		}
		return all
	}
	t.Fatalf("unknown %T", want)
	return nil
}

func TestReader_ReadsWhatWriterWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wire.Writer
		want := write(t, &w, 0)
		if err := wire.Scan(w.B); err != nil {
			t.Fatal(err)
		}
		r := wire.NewReader(w.B)
		got := read(t, r, want)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read %#v, want %#v", got, want)
		}
	})
}

// numeric makes every integer of a generic decoder comparable: it picks the Go type by the width that was written.
func numeric(v any) any {
	switch v := v.(type) {
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = numeric(v[i])
		}
		return all
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	}
	if rv := reflect.ValueOf(v); rv.IsValid() && rv.CanInt() {
		return rv.Int()
	} else if rv.IsValid() && rv.CanUint() && rv.Uint() <= math.MaxInt64 {
		return int64(rv.Uint())
	}
	return v
}

func TestWriter_IsReadAlikeByAnotherLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wire.Writer
		want := write(t, &w, 0)
		var got any
		if err := msgpack.Unmarshal(w.B, &got); err != nil {
			t.Fatal(err)
		}
		if got, want := numeric(got), numeric(want); !reflect.DeepEqual(got, want) {
			t.Fatalf("msgpack reads %#v, want %#v", got, want)
		}
	})
}

func TestWriter_LengthsAndNumbersAtTheirBorders(t *testing.T) {
	borders := []uint64{0, 1, 31, 32, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64, math.MaxInt64 + 1,
		math.MaxUint64}
	for _, v := range borders {
		var w wire.Writer
		w.Uint(v)
		if got, err := readOne(w.B, (*wire.Reader).Uint); got != v || err != nil {
			t.Errorf("Uint(%d) is read as %d, %v", v, got, err)
		}
	}
	for _, v := range []int64{0, -1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt64, math.MaxInt64} {
		var w wire.Writer
		w.Int(v)
		if got, err := readOne(w.B, (*wire.Reader).Int); got != v || err != nil {
			t.Errorf("Int(%d) is read as %d, %v", v, got, err)
		}
	}
	for _, n := range []int{0, 15, 16, 31, 32, 255, 256, 65535, 65536} {
		var text, bin, array wire.Writer
		text.Text(strings.Repeat("x", n))
		bin.Bytes(make([]byte, n))
		array.Array(n)
		array.B = append(array.B, make([]byte, n)...)
		for _, b := range [][]byte{text.B, bin.B, array.B} {
			if err := wire.Scan(b); err != nil {
				t.Errorf("length %d, code 0x%02x: %v", n, b[0], err)
			}
		}
		if got, err := readOne(text.B, (*wire.Reader).Text); len(got) != n || err != nil {
			t.Errorf("a text of %d bytes is read with %d, %v", n, len(got), err)
		}
		if got, err := readOne(bin.B, (*wire.Reader).Bytes); len(got) != n || err != nil {
			t.Errorf("%d bytes are read as %d, %v", n, len(got), err)
		}
		if got := wire.NewReader(array.B).Array(); got != n {
			t.Errorf("an array of %d values is read with %d", n, got)
		}
	}
}

func readOne[T any](b []byte, method func(*wire.Reader) T) (T, error) {
	r := wire.NewReader(b)
	v := method(r)
	return v, r.Close()
}

func TestReader_RefusesOtherTypesAndStaysFailed(t *testing.T) {
	methods := map[string]func(*wire.Reader){
		"Array": func(r *wire.Reader) { r.Array() }, "Uint": func(r *wire.Reader) { r.Uint() }, "Int": func(r *wire.Reader) { r.Int() },
		"Bool": func(r *wire.Reader) { r.Bool() }, "Text": func(r *wire.Reader) { r.Text() }, "Bytes": func(r *wire.Reader) { r.Bytes() },
		"ArrayOf": func(r *wire.Reader) { r.ArrayOf(2) },
	}
	values := map[string][]byte{
		"Array": {0x91, 0x01}, "Uint": {0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "Int": {0xff}, "Bool": {0xc3},
		"Text": {0xa1, 'a'}, "Bytes": {0xc4, 0x01, 0x00}, "map": {0x80}, "float": {0xca, 0, 0, 0, 0}, "nothing": {},
	}
	for name, method := range methods {
		for other, b := range values {
			if name == other {
				continue
			}
			r := wire.NewReader(b)
			method(r)
			first := r.Err()
			if !errors.Is(first, wire.ErrMalformed) {
				t.Errorf("%s of a value for %s: %v, want an error that wraps ErrMalformed", name, other, first)
			}
			if r.Uint() != 0 || r.Int() != 0 || r.Bool() || r.Text() != "" || r.Bytes() != nil || r.Array() != 0 || r.Close() != first {
				t.Errorf("%s of a value for %s: later reads returned values or another error", name, other)
			}
		}
	}
}

func TestReader_CloseRefusesWhatIsLeftOver(t *testing.T) {
	r := wire.NewReader([]byte{0x01, 0x02})
	r.Int()
	if err := r.Close(); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("Close = %v, want an error that wraps ErrMalformed", err)
	}
}

func TestReader_ViewAliasesAndBytesCopies(t *testing.T) {
	message := []byte{0x92, 0xc4, 0x01, 0x05, 0xc4, 0x01, 0x06}
	r := wire.NewReader(message)
	r.ArrayOf(2)
	view, own := r.View(), r.Bytes()
	message[3], message[6] = 0x55, 0x66
	if view[0] != 0x55 || own[0] != 0x06 {
		t.Errorf("View = %x, Bytes = %x after the message changed to 55 and 66", view, own)
	}
	if cap(view) != len(view) {
		t.Errorf("an append to a View would overwrite the message: cap %d", cap(view))
	}
}

// FuzzReader reads any bytes by any script of methods: nothing may panic, and what is handed out lies within the
// message.
func FuzzReader(f *testing.F) {
	f.Add(sample().B, []byte{0, 1, 2, 3, 4, 5, 5, 5, 0, 0})
	for _, b := range hostile() {
		if len(b) < 1<<16 {
			f.Add(b, []byte{0, 1, 2, 3, 4, 5})
		}
	}
	f.Fuzz(func(t *testing.T, b, script []byte) {
		r := wire.NewReader(b)
		total := 0
		for _, step := range script {
			switch step % 6 {
			case 0:
				if n := r.Array(); n > len(b) {
					t.Fatalf("array of %d values in %d bytes", n, len(b))
				}
			case 1:
				r.Uint()
			case 2:
				r.Int()
			case 3:
				r.Bool()
			case 4:
				total += len(r.Text())
			case 5:
				total += len(r.View())
			}
		}
		if total > len(b) {
			t.Fatalf("%d bytes read out of %d", total, len(b))
		}
		if err := r.Close(); err != nil && !errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("%v does not wrap ErrMalformed", err)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	message := sample().B
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.Scan(message); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSkip_LeavesWhatFollows(t *testing.T) {
	var w wire.Writer
	for _, value := range [][]byte{{0xc0}, {0x93, 0x01, 0x92, 0xa1, 'x', 0xc3, 0xcd, 0x01, 0x00}, {0x81, 0xa1, 'k', 0x91, 0x01}, {0xc4, 0x02, 1, 2}, {0xcb, 0, 0, 0, 0, 0, 0, 0, 0}} {
		w.B = append(w.B, value...)
		r := wire.NewReader(append(value, 0x07))
		if got := r.Raw(); !bytes.Equal(got, value) {
			t.Errorf("%x is read raw as %x", value, got)
		}
		if got := r.Uint(); got != 7 || r.Close() != nil {
			t.Errorf("after %x: %d, %v", value, got, r.Err())
		}
	}
	r := wire.NewReader(append(w.B, 0x07))
	r.Skip(0)
	r.Skip(5)
	if got := r.Uint(); got != 7 || r.Close() != nil {
		t.Errorf("after five values: %d, %v", got, r.Err())
	}
	for _, cut := range [][]byte{nil, {0x92, 0x01}, {0xa2, 'x'}, {0xc1}, {0xdd, 0xff, 0xff, 0xff, 0xff}} {
		r := wire.NewReader(cut)
		if r.Skip(1); !errors.Is(r.Err(), wire.ErrMalformed) {
			t.Errorf("%x is passed over: %v", cut, r.Err())
		}
	}
}

func TestArrayFrom_TellsHowManyMoreThereAre(t *testing.T) {
	for _, row := range []struct {
		data []byte
		more int
		ok   bool
	}{{[]byte{0x92, 1, 2}, 0, true}, {[]byte{0x94, 1, 2, 3, 4}, 2, true}, {[]byte{0x91, 1}, 0, false}, {[]byte{0xc0}, 0, false}} {
		r := wire.NewReader(row.data)
		if more := r.ArrayFrom(2); more != row.more || (r.Err() == nil) != row.ok {
			t.Errorf("%x: %d more, %v", row.data, more, r.Err())
		}
	}
}
