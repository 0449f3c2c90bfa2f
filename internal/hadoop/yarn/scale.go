package yarn

import (
	"context"
	"errors"
	"net/http"
	"time"

	"taxon/internal/fs"
	"taxon/internal/ui/format"
)

// Scale makes YARN start or end workers, and returns when the coordinator has the wanted number.
func (d *Deployment) Scale(ctx context.Context, workers int) error {
	d.drainFrom(ctx, workers)
	stores := 0
	if err := d.await(ctx, func(ctx context.Context) (ready bool, missing string, err error) {
		var wait string
		stores, wait, missing, err = d.flex(ctx, workers)
		if wait != "" {
			d.UI.Note("%s", wait)
		}
		return missing == "", missing, err
	}); err != nil {
		return err
	}
	told := time.Now()
	return d.awaitMembers(ctx, 0, stores, workers, func() {
		if time.Since(told) >= flexEvery {
			_, _, _, _ = d.flex(ctx, workers) // what is missing is reported below
			told = time.Now()
		}
	})
}

// drainFrom informs the coordinator of the workers that YARN will end. They are the workers with
// the highest numbers. They get no more tasks and are not considered lost. If the coordinator
// cannot be reached, they count as lost when they end.
func (d *Deployment) drainFrom(ctx context.Context, workers int) {
	c, err := d.dial(ctx)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.DrainThose(ctx, func(name string) bool { return number(name) >= workers })
}

// Loses describes what is lost with the cluster, for the confirmation.
func (d *Deployment) Loses(ctx context.Context, purge bool) string {
	s, err := d.status(ctx)
	if err != nil {
		return ""
	}
	text, processes := d.Name, 0
	for _, role := range Roles() {
		if c := s.Component(role); c != nil {
			processes += len(c.Containers)
		}
	}
	text += " ends, " + format.Counted(int64(processes), "process", "processes")
	if c, err := d.dial(ctx); err == nil {
		defer c.Close()
		if open, weights, err := c.CountJobs(ctx); err == nil {
			text += ", with " + format.Counted(int64(open), "job under way", "jobs under way") + " and the weights of " +
				format.Counted(int64(weights), "job that is done", "jobs that are done")
		}
	}
	if purge {
		return text + "; its folder " + d.Dir + " goes too, with all jobs"
	}
	return text + "; jobs under way continue from their snapshots when it is started again, and weights that were not " +
		"exported go with the stores if these are in YARN's own folders"
}

// flexEvery is the interval at which the wanted number of workers is repeated while waiting. A
// service's master that replaces a dead one forgets a number that it received before it found the
// containers.
const flexEvery = 10 * time.Second

// flex sends the wanted number of workers to the service's master. It returns the number of stores,
// the reason why some workers must wait for resources, or what is still missing, because YARN
// replaces a master that has died.
func (d *Deployment) flex(ctx context.Context, workers int) (stores int, wait, missing string, err error) {
	s, err := d.status(ctx)
	if errors.Is(err, ErrNoService) || ctx.Err() != nil {
		return 0, "", "", d.needService(err)
	}
	if err != nil {
		return 0, "", "YARN does not say how the service is: " + format.OneLine(err.Error()), nil
	}
	if len(s.Components) == 0 {
		return 0, "", "the service has no master now", nil
	}
	w, st := s.Component(Worker), s.Component(Store)
	if w == nil || st == nil {
		return 0, "", "", refuse("service %s is none of `taxon yarn up`'s", d.Name)
	}
	k, err := d.manager.Cluster(ctx)
	if err != nil {
		return 0, "", "", refused(err)
	}
	if wait, err = k.CheckMore(*w, workers); err != nil {
		return 0, "", "", refused(err)
	}
	err = d.services.Flex(ctx, d.Name, Worker, workers)
	var no *Error
	if errors.As(err, &no) && no.Status < http.StatusInternalServerError || ctx.Err() != nil {
		return 0, "", "", refused(err)
	}
	if err != nil {
		return 0, "", "the service's master does not answer: " + format.OneLine(err.Error()), nil
	}
	return st.Number, wait, "", nil
}

// Down ends the service, and with purge removes its folder.
func (d *Deployment) Down(ctx context.Context, purge bool) error {
	if purge {
		if _, err := d.status(ctx); errors.Is(err, ErrNoService) && !fs.Exists(d.Dir) {
			return d.needService(err)
		}
		if err := d.purgeable(ctx); err != nil {
			return err
		}
	}
	err := d.services.Destroy(ctx, d.Name)
	switch {
	case err == nil:
		if err := d.awaitEnd(ctx); err != nil {
			return err
		}
		d.UI.Note("%s: ended", d.Name)
	case !purge || !errors.Is(err, ErrNoService):
		return d.needService(err)
	}
	if !purge {
		return nil
	}
	return d.purge()
}

// awaitEnd waits until YARN has ended the service's run.
func (d *Deployment) awaitEnd(ctx context.Context) error {
	return d.await(ctx, func(ctx context.Context) (bool, string, error) {
		run, err := d.manager.Application(ctx, d.Name)
		if err != nil {
			return false, err.Error(), nil
		}
		return run == nil || run.Dead(), "YARN is still ending the service", nil
	})
}
