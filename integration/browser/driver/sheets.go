package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// highest bounds how much of a page a sheet shows, in pixels, and between is the space between two pictures.
const highest, between = 1400, 12

// scales make pictures of the three widths fit beside each other.
var scales = map[int64]float64{360: 0.8, 1024: 0.6, 1920: 0.45}

// sheets writes a picture of every page into a directory: in three widths beside each other, light and
// folded above dark and unfolded.
func (s *stage) sheets(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	all, err := s.scenes(ctx)
	if err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	var jobs []job
	for _, sc := range all {
		for _, p := range sc.pages {
			name := sc.name + " " + p.name
			if !s.chosen(name) {
				continue
			}
			jobs = append(jobs, job{name, nil, func(l *lane) error {
				t, err := l.window(windowOf{sc.node, true, p.stranger})
				if err != nil {
					return err
				}
				if err := t.visit(p); err != nil {
					return err
				}
				return t.sheet(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".png"))
			}})
		}
	}
	if red := s.runAll(ctx, jobs); red > 0 {
		return fmt.Errorf("%d pages have no picture", red)
	}
	return ctx.Err()
}

// sheet writes the picture of the page that is shown.
func (t *tab) sheet(file string) error {
	var rows []image.Image
	for i, th := range themes {
		if i > 0 { // both are seen: what is folded closed, and open
			if err := t.eval(openAll, nil); err != nil {
				return err
			}
		}
		var row []image.Image
		for _, width := range widths {
			if err := t.do(theme(th), size(width)); err != nil {
				return err
			}
			picture, err := t.picture(width)
			if err != nil {
				return err
			}
			row = append(row, picture)
		}
		rows = append(rows, join(row, true))
	}
	var data bytes.Buffer
	if err := png.Encode(&data, join(rows, false)); err != nil {
		return err
	}
	return os.WriteFile(file, data.Bytes(), 0o644)
}

// picture takes a picture of the page, or of its upper part.
func (t *tab) picture(width int64) (image.Image, error) {
	var height float64
	if err := t.eval(`document.documentElement.scrollHeight`, &height); err != nil {
		return nil, err
	}
	var data []byte
	beyond := true
	err := t.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		got, err := cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{
			CaptureBeyondViewport: &beyond,
			Clip: &page.Viewport{
				Width:  float64(width),
				Height: min(height, highest),
				Scale:  scales[width],
			},
		})
		data = got.Data
		return err
	}))
	if err != nil {
		return nil, err
	}
	return png.Decode(bytes.NewReader(data))
}

// join puts pictures beside each other, or one below the other.
func join(pictures []image.Image, beside bool) image.Image {
	var width, height int
	for _, p := range pictures {
		w, h := p.Bounds().Dx(), p.Bounds().Dy()
		if beside {
			width, height = width+w+between, max(height, h)
		} else {
			width, height = max(width, w), height+h+between
		}
	}
	all := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(all, all.Bounds(), image.NewUniform(color.RGBA{R: 128, G: 0, B: 128, A: 255}), image.Point{}, draw.Src)
	at := image.Point{}
	for _, p := range pictures {
		draw.Draw(all, p.Bounds().Sub(p.Bounds().Min).Add(at), p, p.Bounds().Min, draw.Src)
		if beside {
			at.X += p.Bounds().Dx() + between
		} else {
			at.Y += p.Bounds().Dy() + between
		}
	}
	return all
}
