package guides_test

import (
	"context"
	"errors"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/enginetest"
	"taskledger/task"
)

// Image is the parameter of resize.
type Image struct{ Path string }

var (
	resize = behaviors.Define[Image, string]("resize", nil)
	notify = behaviors.Define[string, behaviors.None]("notify", nil)
)

// resizeImage makes a thumbnail, and has somebody told of it by another task.
func resizeImage(ctx context.Context, i Image) (string, error) {
	node, ok := engine.ClientFromContext(ctx)
	if !ok {
		return "", errors.New("it runs on no node")
	}
	thumbnail := "small-" + i.Path
	_, err := notify.Submit(ctx, node, thumbnail)
	return thumbnail, err
}

func TestResize_MakesThumbnails(t *testing.T) {
	n := enginetest.Memory(t, resize.Bind(resizeImage)) // or enginetest.Files: in a temporary directory
	f, err := resize.Submit(t.Context(), n.Client, Image{Path: "a.png"})
	if err != nil {
		t.Fatal(err)
	}
	if done := n.Await(t, f.ID()); done.Status != task.Success {
		t.Errorf("it failed: %v", done.Error)
	}
	n.RequireSubmitted(t, "notify")                   // what the function submitted, with its parameters
	n.Golden(t, f.ID(), "testdata/thumbnails.golden") // the history of the task; ENGINETEST_UPDATE=1 go test writes the file
}
