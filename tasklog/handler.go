package tasklog

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// emptyRecord is the text of a record without message, time and attributes.
const emptyRecord = `level=INFO msg=""`

// handler implements Writer.Handler. A line is the message, and the attributes as slog.TextHandler writes them.
type handler struct {
	w    *Writer
	form *form
	text slog.Handler // writes to form
}

// form is where the handlers of a writer make the text of a record.
type form struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func newHandler(w *Writer) *handler {
	f := &form{}
	return &handler{w, f, slog.NewTextHandler(&f.text, nil)}
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	bare := slog.NewRecord(time.Time{}, slog.LevelInfo, "", 0)
	r.Attrs(func(a slog.Attr) bool {
		bare.AddAttrs(a)
		return true
	})
	attrs, err := h.form.of(ctx, h.text, bare)
	if err != nil {
		return err
	}
	level := Info
	if r.Level >= slog.LevelError {
		level = Error
	}
	_, err = (&output{w: h.w, level: level}).Write([]byte(strings.TrimSuffix(r.Message, "\n") + attrs + "\n"))
	return err
}

// of returns the attributes of a record, each after a space.
func (f *form) of(ctx context.Context, text slog.Handler, r slog.Record) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text.Reset()
	err := text.Handle(ctx, r)
	return strings.TrimSuffix(strings.TrimPrefix(f.text.String(), emptyRecord), "\n"), err
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.w, h.form, h.text.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.w, h.form, h.text.WithGroup(name)}
}
