package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/yarn"
)

func newYarnScale(a *app) *cobra.Command {
	var o yarnOptions
	workers := 0
	cmd := &cobra.Command{
		Use:   "scale --workers K --name NAME",
		Short: "change the number of workers of a cluster on YARN",
		Long: "Has YARN start or end workers, also in the middle of jobs, and returns when the coordinator knows as many as are wanted. More than the cluster's memory holds are refused; if some have to wait for room, that is said at once. " +
			"Workers that end give their tasks back.",
		Example: "taxon yarn scale --workers 32 --name wiki\ntaxon yarn scale --workers 0 --name wiki --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.scale(cmd.Context(), a, workers) },
	}
	o.flags(cmd)
	flagGroup(cmd, "Processes", func(f *pflag.FlagSet) {
		intFlag(f, &workers, "workers", 0, 0, 1<<16, "`K` workers")
	})
	o.yarnFlags(cmd)
	require(cmd, "workers")
	return cmd
}

func (o *yarnOptions) scale(ctx context.Context, a *app, workers int) error {
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
	stores := 0
	if err := o.awaitYarn(ctx, func(ctx context.Context) (ready bool, missing string, err error) {
		var wait string
		stores, wait, missing, err = o.flex(ctx, c, services, workers)
		if wait != "" {
			a.ui.Note("%s", wait)
		}
		return missing == "", missing, err
	}); err != nil {
		return err
	}
	told := time.Now()
	if err := o.awaitMembers(ctx, a, c, 0, stores, workers, func() {
		if time.Since(told) >= flexEvery {
			_, _, _, _ = o.flex(ctx, c, services, workers) // what is missing is told all the same
			told = time.Now()
		}
	}); err != nil {
		return err
	}
	return o.print(ctx, a, c, services)
}

// flexEvery is how often the number of workers is told again while it is waited for: a
// service's master that takes the place of one that has died forgets what it is told before
// it has found the containers.
const flexEvery = 10 * time.Second

// flex tells the service's master how many workers are wanted, and returns the number of
// stores, why some will have to wait for room, or what is missing yet: a master that has died
// is replaced by YARN.
func (o *yarnOptions) flex(ctx context.Context, c *yarn.Client, services yarn.Services, workers int) (stores int, wait, missing string, err error) {
	s, err := o.status(ctx, services)
	if errors.Is(err, yarn.ErrNoService) || ctx.Err() != nil {
		return 0, "", "", o.needService(err)
	}
	if err != nil {
		return 0, "", "YARN does not say how the service is: " + oneLine(err.Error()), nil
	}
	if len(s.Components) == 0 {
		return 0, "", "the service has no master now", nil
	}
	w, st := s.Component(yarn.Worker), s.Component(yarn.Store)
	if w == nil || st == nil {
		return 0, "", "", usagef("yarn scale: service %s is none of `taxon yarn up`'s", o.name)
	}
	k, err := c.Cluster(ctx)
	if err != nil {
		return 0, "", "", o.fail(err)
	}
	if wait, err = k.CheckMore(*w, workers); err != nil {
		return 0, "", "", usagef("yarn scale: %w", err)
	}
	err = services.Flex(ctx, o.name, yarn.Worker, workers)
	var refused *yarn.Error
	if errors.As(err, &refused) && refused.Status < http.StatusInternalServerError || ctx.Err() != nil {
		return 0, "", "", o.fail(err)
	}
	if err != nil {
		return 0, "", "the service's master does not answer: " + oneLine(err.Error()), nil
	}
	return st.Number, wait, "", nil
}

func newYarnDown(a *app) *cobra.Command {
	var o yarnOptions
	purge := false
	cmd := &cobra.Command{
		Use:   "down --name NAME",
		Short: "end a cluster on YARN; its jobs stay in HDFS",
		Long: "Ends the service. The coordinator's journal and the jobs' snapshots stay in the cluster's folder: `taxon yarn up` with the same --name and --dir goes on with the jobs, from their last snapshots. " +
			"--purge removes the folder too, with all jobs.",
		Example: "taxon yarn down --name wiki\ntaxon yarn down --name wiki --purge",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.down(cmd.Context(), a, purge) },
	}
	o.flags(cmd)
	flagGroup(cmd, "What is kept", func(f *pflag.FlagSet) {
		f.BoolVar(&purge, "purge", false, "remove the cluster's folder in HDFS: jobs, snapshots, certificates")
	})
	o.yarnFlags(cmd)
	return cmd
}

func (o *yarnOptions) down(ctx context.Context, a *app, purge bool) error {
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
	return o.end(ctx, a, c, services, purge)
}

// end ends the service, and removes its folder if purge.
func (o *yarnOptions) end(ctx context.Context, a *app, c *yarn.Client, services yarn.Services, purge bool) error {
	if purge {
		if _, err := o.status(ctx, services); errors.Is(err, yarn.ErrNoService) && !fs.Exists(o.dir) {
			return o.needService(err)
		}
		if err := o.purgeable(ctx); err != nil {
			return err
		}
	}
	err := services.Destroy(ctx, o.name)
	switch {
	case err == nil:
		if err := o.awaitEnd(ctx, c); err != nil {
			return err
		}
		a.ui.Note("%s: ended", o.name)
	case errors.Is(err, yarn.ErrNoService) && !purge:
		return o.needService(err)
	case !errors.Is(err, yarn.ErrNoService):
		return o.fail(err)
	}
	if !purge {
		return nil
	}
	return o.purge(a)
}

// awaitEnd waits until YARN has ended the service's run.
func (o *yarnOptions) awaitEnd(ctx context.Context, c *yarn.Client) error {
	return o.awaitYarn(ctx, func(ctx context.Context) (bool, string, error) {
		run, err := c.Application(ctx, o.name)
		if err != nil {
			return false, err.Error(), nil
		}
		return run == nil || run.Dead(), "YARN is still ending the service", nil
	})
}
