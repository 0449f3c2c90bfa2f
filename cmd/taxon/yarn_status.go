package main

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"

	"github.com/spf13/cobra"

	"taxon/internal/cluster"
	taxonv1 "taxon/proto/taxon/v1"

	"taxon/internal/yarn"
)

// yarnDocument is `taxon yarn status --json`, and that of up and scale.
type yarnDocument struct {
	Name        string          `json:"name"`
	Application string          `json:"application"` // for `yarn logs -applicationId`
	State       string          `json:"state"`       // YARN's: ACCEPTED, STARTED, STABLE, FLEX, ...
	Queue       string          `json:"queue"`
	Coordinator string          `json:"coordinator"` // for --coordinator: the file
	Address     string          `json:"address"`     // where it is now; "": it has not said
	Epoch       uint64          `json:"epoch"`
	Answers     bool            `json:"answers"` // the coordinator does
	Workers     int             `json:"workers"` // that the coordinator knows as up
	Stores      int             `json:"stores"`
	Containers  []yarnContainer `json:"containers"`
	Diagnostics string          `json:"diagnostics,omitempty"`
}

type yarnContainer struct {
	Instance  string `json:"instance"` // worker-0
	State     string `json:"state"`
	Host      string `json:"host"`
	Container string `json:"container"` // for `yarn logs -containerId`
}

func newYarnStatus(a *app) *cobra.Command {
	var o yarnOptions
	cmd := &cobra.Command{
		Use:     "status --name NAME",
		Short:   "what YARN and the coordinator say of a cluster",
		Long:    "Shows the service's state, its containers with their hosts, where the coordinator is, and how many workers and stores it knows.",
		Example: "taxon yarn status --name wiki\ntaxon yarn status --name wiki --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if err := o.prepare(); err != nil {
				return err
			}
			c, _, err := o.client()
			if err != nil {
				return err
			}
			services, err := o.services(ctx, c)
			if err != nil {
				return err
			}
			return o.print(ctx, a, c, services)
		},
	}
	o.flags(cmd)
	o.yarnFlags(cmd)
	return cmd
}

// print shows the cluster.
func (o *yarnOptions) print(ctx context.Context, a *app, manager *yarn.Client, services yarn.Services) error {
	s, err := o.status(ctx, services)
	if errors.Is(err, yarn.ErrNoService) || ctx.Err() != nil {
		return o.needService(err)
	}
	if err != nil { // its master is just away: say what else is known
		s = &yarn.Service{Name: o.name, State: "UNKNOWN", Diagnostics: err.Error()}
	}
	d := yarnDocument{Name: s.Name, Application: s.ID, State: s.State, Queue: s.Queue, Coordinator: o.place(), Containers: []yarnContainer{}, Diagnostics: oneLine(s.Diagnostics)}
	if run, err := manager.Application(ctx, o.name); err == nil && run != nil { // that it is not known is no error: the service is
		d.Application, d.Queue = run.ID, run.Queue
		if d.Diagnostics == "" && run.State != "RUNNING" {
			d.Diagnostics = oneLine(run.Why())
		}
	}
	for _, role := range yarn.Roles() {
		if c := s.Component(role); c != nil {
			for _, k := range c.Containers {
				d.Containers = append(d.Containers, yarnContainer{Instance: k.Instance, State: k.State, Host: hostOf(k), Container: k.ID})
			}
		}
	}
	if err := d.ask(ctx, o); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(d)
	}
	return d.print(a)
}

func hostOf(k yarn.Container) string {
	for _, h := range []string{k.Host, k.HostName, k.IP} {
		if h != "" {
			return h
		}
	}
	return ""
}

// ask adds what the coordinator says; that it says nothing is no error.
func (d *yarnDocument) ask(ctx context.Context, o *yarnOptions) error {
	p, err := cluster.ReadPlace(ctx, o.place())
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	d.Address, d.Epoch = p.Coordinator, p.Epoch
	c, err := o.clusterClient(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if d.Stores, d.Workers, err = c.membersUp(ctx); err == nil {
		d.Answers = true
	}
	return ctx.Err()
}

func (d *yarnDocument) print(a *app) error {
	answers := "does not answer"
	if d.Answers {
		answers = "knows " + counted(int64(d.Workers), "worker", "workers") + " and " + counted(int64(d.Stores), "store", "stores")
	}
	where := d.Address
	if where == "" {
		where = "nowhere yet"
	}
	fmt.Fprintf(a.stdout, "%s  %s  %s  queue %s\n", d.Name, strings.ToLower(d.State), d.Application, d.Queue)
	fmt.Fprintf(a.stdout, "coordinator at %s (epoch %d) %s\n--coordinator %s\n", where, d.Epoch, answers, d.Coordinator)
	if d.Diagnostics != "" {
		fmt.Fprintln(a.stdout, d.Diagnostics)
	}
	rows := [][]string{{"INSTANCE", "STATE", "HOST", "CONTAINER"}}
	for _, k := range d.Containers {
		rows = append(rows, []string{k.Instance, strings.ToLower(k.State), k.Host, k.Container})
	}
	a.table(rows)
	return nil
}

// membersUp counts the stores and workers that the coordinator knows as up.
func (c *client) membersUp(ctx context.Context) (stores, workers int, err error) {
	ctx, done := context.WithTimeout(ctx, clientTimeout)
	defer done()
	s, err := c.jobs.Stores(ctx, &taxonv1.StoresRequest{})
	if err != nil {
		return 0, 0, err
	}
	w, err := c.jobs.Workers(ctx, &taxonv1.WorkersRequest{})
	if err != nil {
		return 0, 0, err
	}
	for _, s := range s.GetShards() {
		if s.GetState() == taxonv1.MemberState_MEMBER_STATE_UP {
			stores++
		}
	}
	for _, w := range w.GetWorkers() {
		if w.GetState() == taxonv1.MemberState_MEMBER_STATE_UP {
			workers++
		}
	}
	return stores, workers, nil
}

// awaitMembers waits until a coordinator newer than epoch before knows as many stores and
// workers as are wanted. Meanwhile it calls insist, unless that is nil.
func (o *yarnOptions) awaitMembers(ctx context.Context, a *app, manager *yarn.Client, before uint64, stores, workers int, insist func()) error {
	line := a.ui.Start("yarn: processes ready", int64(1+stores+workers))
	defer line.Done()
	var c *client
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	failed := o.failures(ctx)
	return o.awaitYarn(ctx, func(ctx context.Context) (_ bool, missing string, err error) {
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
		run, err := manager.Application(ctx, o.name)
		if err == nil && run != nil && run.Dead() {
			return false, "", usagef("yarn %s: YARN has ended %s: %s", o.verb, run.ID, run.Why())
		}
		p, err := cluster.ReadPlace(ctx, o.place())
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return false, err.Error(), nil
		}
		if err != nil || p.Epoch <= before {
			return false, waitsFor(run), nil
		}
		if c == nil {
			if c, err = o.clusterClient(ctx); err != nil {
				return false, err.Error(), nil
			}
		}
		haveStores, haveWorkers, err := c.membersUp(ctx)
		if err != nil {
			return false, oneLine(c.fail(err).Error()), nil
		}
		line.Set(int64(1 + min(haveStores, stores) + min(haveWorkers, workers)))
		if haveStores == stores && haveWorkers == workers {
			return true, "", nil
		}
		return false, fmt.Sprintf("the coordinator knows %d of %d workers and %d of %d stores", haveWorkers, workers, haveStores, stores), nil
	})
}

// lastingFailures is how often an instance must have failed, from a cause that lasts, until
// no more is hoped for.
const lastingFailures = 3

// failures watches the cluster's processes: what it returns says which one has failed since,
// and why, and is an error of the user's when trying again won't help.
func (o *yarnOptions) failures(ctx context.Context) func(context.Context) (string, error) {
	before := map[string]int{}
	for _, f := range readFailures(ctx, o.dir) {
		before[f.Instance] = f.Times
	}
	return func(ctx context.Context) (why string, err error) {
		for _, f := range readFailures(ctx, o.dir) {
			times := f.Times - before[f.Instance]
			if times <= 0 {
				continue
			}
			at := ""
			if f.Host != "" {
				at = " on host " + f.Host
			}
			if f.Lasting && times >= lastingFailures {
				return "", usagef("yarn %s: %s does not start%s: %s", o.verb, f.Instance, at, oneLine(f.Error))
			}
			if why == "" {
				why = fmt.Sprintf("%s failed %s%s, the last time with: %s", f.Instance, counted(int64(times), "time", "times"), at, oneLine(f.Error))
			}
		}
		return why, nil
	}
}

// waitsFor says why there is no coordinator yet.
func waitsFor(run *yarn.Application) string {
	if run != nil && run.State == "ACCEPTED" && run.Why() != "" {
		return "YARN has not started the service's master yet: " + run.Why()
	}
	return "no coordinator has said where it is"
}
