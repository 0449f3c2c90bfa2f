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

// Report is the state of a cluster according to YARN and the coordinator, as `taxon yarn status
// --json` prints it.
type Report struct {
	Name string `json:"name"`
	// Application is the id for `yarn logs -applicationId`.
	Application string `json:"application"`
	// State is the state of the service as YARN names it: ACCEPTED, STARTED, STABLE, FLEX and
	// others.
	State string `json:"state"`
	Queue string `json:"queue"`
	// Coordinator is the value for the option coordinator. It is the path of a file.
	Coordinator string `json:"coordinator"`
	// Address is the coordinator's current address. It is empty if unknown.
	Address string `json:"address"`
	// Page is the URL of its page. It is empty if there is none.
	Page  string `json:"page,omitempty"`
	Epoch uint64 `json:"epoch"`
	// Answers reports that the coordinator answers.
	Answers bool `json:"answers"`
	// Workers is the number of workers that are up according to the coordinator.
	Workers     int      `json:"workers"`
	Stores      int      `json:"stores"`
	Containers  []Placed `json:"containers"`
	Diagnostics string   `json:"diagnostics,omitempty"`
}

// Placed is a container with its host.
type Placed struct {
	// Instance is a name such as worker-0.
	Instance string `json:"instance"`
	State    string `json:"state"`
	Host     string `json:"host"`
	// Container is the id for `yarn logs -containerId`.
	Container string `json:"container"`
}

// Report describes the cluster by asking YARN and the coordinator. If one of them does not answer,
// this is not an error.
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
		// An unknown run is no error, because the service is known.
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

// awaitMembers waits until a coordinator with an epoch above before has the wanted numbers of
// stores and workers. Meanwhile it calls insist, unless that is nil.
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

// waitsFor returns the reason why there is no coordinator yet.
func waitsFor(run *Application) string {
	if run != nil && run.State == "ACCEPTED" && run.Why() != "" {
		return "YARN has not started the service's master yet: " + run.Why()
	}
	return "no coordinator has said where it is"
}
