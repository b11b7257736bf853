package ui

import (
	"net/http"
	"sync"
	"time"

	"taskledger/api"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/task"
)

func (u *UI) settingsRoutes() []api.Route {
	return []api.Route{{
		Method:  http.MethodGet,
		Pattern: Root + "settings",
		Summary: "Show the settings of the cluster, and who has changed them",
		Role:    token.Viewer,
		Scope:   api.Everything,
		Serve:   u.showSettings,
	}}
}

// settingsPage holds what the page of settings shows.
type settingsPage struct {
	Paused  []task.Pause
	Changes deeds
}

func (u *UI) showSettings(c *api.Call) error {
	l := u.look(c, "Settings", "Settings")
	var body settingsPage
	var reading sync.WaitGroup
	reading.Go(func() {
		kinds := []events.Kind{events.KindPaused, events.KindUnpaused}
		body.Changes = l.lookBack(time.Time{}, kinds, func(*deed) bool { return true })
	})
	var now api.Behaviors
	l.parts(part{"settings", "/v1/behaviors", &now})
	reading.Wait()
	body.Paused = now.Paused
	return l.show("settings", body)
}
