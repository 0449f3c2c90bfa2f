package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"taxon/internal/exit"
	"taxon/internal/jobs"
	"taxon/internal/yarn"
)

// newYarnRun is what the containers start.
func newYarnRun(a *app) *cobra.Command {
	var instance, file string
	cmd := &cobra.Command{
		Use:     "run ROLE --instance NAME --file FILE",
		Short:   "the process that a container of `taxon yarn up` starts",
		Long:    "Runs a coordinator, store or worker in a container of YARN's, with the arguments that `taxon yarn up` has written to FILE. YARN starts it.",
		Example: "taxon yarn run worker --instance worker-0 --file run.json\ntaxon yarn run store --instance store-1 --file run.json",
		Hidden:  true,
		Args:    oneArg("ROLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := yarn.ReadRun(file)
			if err != nil {
				return exit.Usagef("yarn run: %w", err)
			}
			err = runContainer(cmd, a, r, args[0], instance)
			tellFailure(cmd.Context(), r.Dir, instance, err)
			return err
		},
	}
	cmd.Flags().StringVar(&instance, "instance", "", "the container's `NAME` in the service")
	cmd.Flags().StringVar(&file, "file", "run.json", "what to run: a `FILE`")
	require(cmd, "instance")
	return cmd
}

// runContainer runs a role's process in the folders that are there for its instance.
func runContainer(cmd *cobra.Command, a *app, r *yarn.Run, role, instance string) error {
	words, temp, err := r.Command(role, instance, os.Getenv)
	if err != nil {
		return exit.Usagef("yarn run: %w", err)
	}
	if err := os.Setenv("TMPDIR", temp); err != nil { // the host's own may be small
		return err
	}
	return runRole(cmd, a, role, words)
}

// tellFailure leaves an error where `yarn up` and `scale` find it: the container's log is
// on a host that the user may not see.
func tellFailure(ctx context.Context, dir, instance string, err error) {
	if err == nil || jobs.IsCancelled(err) || ctx.Err() != nil || dir == "" {
		return
	}
	code, line := describe(ctx, err)
	f := yarn.ContainerFailure{Instance: instance, Host: os.Getenv("NM_HOST"), Error: line, Lasting: code == exit.Usage}
	_ = f.Leave(ctx, dir) // else the container's log has it
}

// runRole runs a process's verb with arguments.
func runRole(parent *cobra.Command, a *app, role string, args []string) error {
	process := map[string]verb{yarn.Coordinator: newCoordinatorCmd, yarn.Store: newStoreCmd, yarn.Worker: newWorkerCmd}[role](a)
	process.SetContext(parent.Context())
	if err := process.ParseFlags(args); err != nil {
		return exit.Usagef("yarn run %s: %s: %w", role, strings.Join(args, " "), err)
	}
	return process.RunE(process, nil)
}
