package yarn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"

	"taxon/internal/cluster"
	"taxon/internal/cluster/client"
	"taxon/internal/ui/format"
)

// Report is what YARN and the coordinator say about a cluster: `taxon yarn status --json`.
type Report struct {
	Name        string   `json:"name"`
	Application string   `json:"application"` // for `yarn logs -applicationId`
	State       string   `json:"state"`       // YARN's: ACCEPTED, STARTED, STABLE, FLEX, ...
	Queue       string   `json:"queue"`
	Coordinator string   `json:"coordinator"`    // for --coordinator: the file
	Address     string   `json:"address"`        // its present address; "": unknown
	Page        string   `json:"page,omitempty"` // URL of its page; empty: it shows none
	Epoch       uint64   `json:"epoch"`
	Answers     bool     `json:"answers"` // the coordinator answers
	Workers     int      `json:"workers"` // up according to the coordinator
	Stores      int      `json:"stores"`
	Containers  []Placed `json:"containers"`
	Diagnostics string   `json:"diagnostics,omitempty"`
}

// Placed is a container with its host.
type Placed struct {
	Instance  string `json:"instance"` // worker-0
	State     string `json:"state"`
	Host      string `json:"host"`
	Container string `json:"container"` // for `yarn logs -containerId`
}

// Report asks YARN and the coordinator. If one of them is silent that is no error.
func (d *Deployment) Report(ctx context.Context) (*Report, error) {
	s, err := d.status(ctx)
	if errors.Is(err, ErrNoService) || ctx.Err() != nil {
		return nil, d.needService(err)
	}
	if err != nil { // its master is away for now: report the rest
		s = &Service{Name: d.Name, State: "UNKNOWN", Diagnostics: err.Error()}
	}
	r := &Report{Name: s.Name, Application: s.ID, State: s.State, Queue: s.Queue, Coordinator: d.place(),
		Containers: []Placed{}, Diagnostics: format.OneLine(s.Diagnostics)}
	if run, err := d.manager.Application(ctx, d.Name); err == nil && run != nil {
		// an unknown run is no error, as the service is known
		r.Application, r.Queue = run.ID, run.Queue
		if r.Diagnostics == "" && run.State != "RUNNING" {
			r.Diagnostics = format.OneLine(run.Why())
		}
	}
	for _, role := range Roles() {
		if c := s.Component(role); c != nil {
			for _, k := range c.Containers {
				r.Containers = append(r.Containers, Placed{Instance: k.Instance, State: k.State, Host: cmp.Or(k.Host, k.HostName,
					k.IP), Container: k.ID})
			}
		}
	}
	p, err := cluster.ReadPlace(ctx, d.place())
	if errors.Is(err, iofs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	r.Address, r.Page, r.Epoch = p.Coordinator, p.Page, p.Epoch
	c, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r.Stores, r.Workers, err = c.MembersUp(ctx)
	r.Answers = err == nil
	return r, ctx.Err()
}

// awaitMembers waits until a coordinator newer than epoch before knows as many stores and workers
// as are wanted. Meanwhile it calls insist, if that is not nil.
func (d *Deployment) awaitMembers(ctx context.Context, before uint64, stores, workers int, insist func()) error {
	line := d.UI.Start("yarn: processes ready", int64(1+stores+workers))
	defer line.Done()
	var c *client.Client
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	failed := d.failures(ctx)
	return d.await(ctx, func(ctx context.Context) (_ bool, missing string, err error) {
		if insist != nil {
			insist()
		}
		why, err := failed(ctx)
		if err != nil {
			return false, "", err
		}
		defer func() {
			if missing != "" && why != "" {
				missing = why
			}
		}()
		run, err := d.manager.Application(ctx, d.Name)
		if err == nil && run != nil && run.Dead() {
			return false, "", refuse("YARN has ended %s: %s", run.ID, run.Why())
		}
		p, err := cluster.ReadPlace(ctx, d.place())
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return false, err.Error(), nil
		}
		if err != nil || p.Epoch <= before {
			return false, waitsFor(run), nil
		}
		if c == nil {
			if c, err = d.dial(ctx); err != nil {
				return false, err.Error(), nil
			}
		}
		haveStores, haveWorkers, err := c.MembersUp(ctx)
		if err != nil {
			return false, format.OneLine(c.Fail(err).Error()), nil
		}
		line.Set(int64(1 + min(haveStores, stores) + min(haveWorkers, workers)))
		if haveStores == stores && haveWorkers == workers {
			return true, "", nil
		}
		return false, fmt.Sprintf("the coordinator knows %d of %d workers and %d of %d stores", haveWorkers, workers,
			haveStores, stores), nil
	})
}

// waitsFor says why there is no coordinator yet.
func waitsFor(run *Application) string {
	if run != nil && run.State == "ACCEPTED" && run.Why() != "" {
		return "YARN has not started the service's master yet: " + run.Why()
	}
	return "no coordinator has said where it is"
}
