package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster"
	"taxon/internal/fs"
	"taxon/internal/yarn"
)

// yarnOptions are the flags that yarn's verbs share.
type yarnOptions struct {
	verb    string
	name    string
	dir     string
	guessed bool // dir was not given
	manager string
	command string
	wait    time.Duration
	user    string
}

func newYarnCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "yarn VERB",
		GroupID: groupCluster,
		Short:   "a cluster placed by Hadoop YARN",
		Long: "Runs a coordinator, stores and workers as a service of Hadoop YARN, which places them, starts again what dies, and scales them in the middle of jobs. " +
			"The binary, certificates, the coordinator's journal and snapshots lie in a folder of HDFS, where the other verbs find the cluster too: --coordinator hdfs://.../coordinator. See docs/yarn.md.",
		Example: "taxon yarn up --name wiki --workers 16 --slots 8 --stores 4 --queue research\n" +
			"taxon yarn down --name wiki",
	}
	cmd.AddCommand(newYarnUp(a), newYarnScale(a), newYarnStatus(a), newYarnDown(a), newYarnRun(a))
	return cmd
}

// defaultYarnName is the service's where none is given.
const defaultYarnName = "taxon"

func (o *yarnOptions) flags(cmd *cobra.Command) {
	o.verb = cmd.Name()
	flagGroup(cmd, "Service", func(f *pflag.FlagSet) {
		f.StringVar(&o.name, "name", defaultYarnName, "`NAME` of the service")
		f.StringVar(&o.dir, "dir", "", "the cluster's `FOLDER` in HDFS (default: the service's that runs, else hdfs:///user/USER/taxon/NAME)")
	})
}

func (o *yarnOptions) yarnFlags(cmd *cobra.Command) {
	flagGroup(cmd, "YARN", func(f *pflag.FlagSet) {
		f.StringVar(&o.manager, "resource-manager", "", "`URL` (http://host:8088) of the resource manager (default: of yarn-site.xml in HADOOP_CONF_DIR)")
		f.StringVar(&o.command, "yarn-command", "yarn", "`COMMAND` of Hadoop's that does it where the resource manager's service API is closed")
		f.DurationVar(&o.wait, "wait", 3*time.Minute, "give up if it is not ready after `TIME`")
	})
}

// place is the file in which the cluster's coordinator says where it is.
func (o *yarnOptions) place() string { return fs.Join(o.dir, placeName) }

// Names in the cluster's folder.
const (
	placeName    = "coordinator"
	clientFolder = "client"
)

// prepare checks the flags that all verbs have, and fills in what was left out.
func (o *yarnOptions) prepare() error {
	if err := yarn.CheckName(o.name); err != nil {
		return usagef("yarn %s: --name %w", o.verb, err)
	}
	if o.user = os.Getenv("HADOOP_USER_NAME"); o.user == "" {
		u, err := user.Current()
		if err != nil {
			return usagef("yarn %s: this process's user has no name: set HADOOP_USER_NAME", o.verb)
		}
		o.user = u.Username
	}
	if o.guessed = o.dir == ""; o.guessed {
		o.dir = fs.Scheme + "/user/" + o.user + "/taxon/" + o.name
	}
	if !fs.IsRemote(o.dir) {
		return usagef("yarn %s: --dir %s: must be a folder in HDFS, hdfs://...: the containers run on any host", o.verb, quoteIfOdd(o.dir))
	}
	o.dir = fs.Clean(o.dir)
	return nil
}

// status describes the service, which also tells the cluster's folder, if that was not given.
// While the service has no master YARN's own file of it tells.
func (o *yarnOptions) status(ctx context.Context, services yarn.Services) (*yarn.Service, error) {
	s, err := services.Status(ctx, o.name)
	if errors.Is(err, yarn.ErrNoService) || !o.guessed {
		return s, err
	}
	dir := ""
	if err == nil {
		dir = s.Folder()
	}
	if dir == "" {
		dir = o.kept(ctx).Folder()
	}
	if dir != "" {
		o.dir, o.guessed = fs.Clean(dir), false
	}
	return s, err
}

// kept reads YARN's own file of the service, which lies in its user's home; one that can't be
// read tells nothing.
func (o *yarnOptions) kept(ctx context.Context) *yarn.Service {
	s := &yarn.Service{}
	data, err := fs.ReadFile(ctx, fs.Scheme+"/user/"+o.user+"/.yarn/services/"+o.name+"/"+o.name+".json")
	if err != nil || json.Unmarshal(data, s) != nil {
		return &yarn.Service{}
	}
	return s
}

// confDir is the folder of Hadoop's configuration; "": none.
func confDir() string {
	if dir := os.Getenv("HADOOP_CONF_DIR"); dir != "" {
		return dir
	}
	if home := os.Getenv("HADOOP_HOME"); home != "" {
		for _, sub := range []string{"etc/hadoop", "conf"} {
			if dir := filepath.Join(home, sub); fs.Exists(filepath.Join(dir, "core-site.xml")) {
				return dir
			}
		}
	}
	return ""
}

// client is of the resource manager that the flags or the configuration name.
func (o *yarnOptions) client() (*yarn.Client, yarn.Conf, error) {
	conf, err := yarn.ReadConf(confDir())
	if err != nil {
		return nil, nil, usagef("yarn %s: %w", o.verb, err)
	}
	c := &yarn.Client{User: o.user}
	if o.manager != "" {
		if err := yarn.CheckURL(o.manager); err != nil {
			return nil, nil, usagef("yarn %s: --resource-manager %w", o.verb, err)
		}
		c.URLs = []string{o.manager}
	} else if c.URLs, err = conf.ResourceManagers(); err != nil {
		return nil, nil, usagef("yarn %s: %w: set HADOOP_CONF_DIR to the folder of yarn-site.xml, or give --resource-manager http://HOST:8088", o.verb, err)
	}
	if conf.Kerberos() {
		c.Negotiate = fs.Negotiate
		c.User = ""
	}
	return c, conf, nil
}

// services is how the service is managed: by the resource manager's API, or where that is
// closed by Hadoop's own command.
func (o *yarnOptions) services(ctx context.Context, c *yarn.Client) (yarn.Services, error) {
	_, err := c.Status(ctx, o.name)
	if errors.Is(err, yarn.ErrClosed) {
		if _, err := c.Cluster(ctx); err != nil {
			return nil, o.fail(err) // what is there is no resource manager
		}
		cli, missing := yarn.NewCommand(o.command, confDir(), c)
		if missing != nil {
			return nil, o.fail(errors.Join(err, missing))
		}
		return cli, nil
	}
	if err != nil && !errors.Is(err, yarn.ErrNoService) { // the service's master may just be away, which is no reason to refuse everything
		if _, err := c.Cluster(ctx); err != nil {
			return nil, o.fail(err)
		}
	}
	return c, nil
}

// fail words an error of YARN's: what it refuses is for the user to mend.
func (o *yarnOptions) fail(err error) error {
	if err == nil || isCancelled(err) {
		return err
	}
	return usagef("yarn %s: %w", o.verb, err)
}

// needService refuses a service that is not there.
func (o *yarnOptions) needService(err error) error {
	if errors.Is(err, yarn.ErrNoService) {
		return usagef("yarn %s: YARN knows no service %s of yours: `taxon yarn up --name %s` starts one", o.verb, o.name, o.name)
	}
	return o.fail(err)
}

// clusterClient calls the cluster that was placed.
func (o *yarnOptions) clusterClient(ctx context.Context) (*client, error) {
	c := clientOptions{verb: "yarn " + o.verb, coordinator: o.place(), patience: time.Second}
	return c.dialIn(ctx)
}

// pauseEvery is how often YARN and the coordinator are asked while they are waited for.
const pauseEvery = 300 * time.Millisecond

// awaitYarn calls done until it says so, an error comes, or the time is over; it tells what
// is missing.
func (o *yarnOptions) awaitYarn(ctx context.Context, done func(ctx context.Context) (ready bool, missing string, err error)) error {
	missing := ""
	for deadline := time.Now().Add(o.wait); ; {
		ready, m, err := done(ctx)
		if err != nil || ready {
			return err
		}
		missing = m
		if time.Now().After(deadline) {
			return withStatus(exitFailed, "yarn %s: not ready after %v: %s; `taxon yarn status --name %s` shows it", o.verb, o.wait, missing, o.name)
		}
		if err := cluster.Pause(ctx, pauseEvery); err != nil {
			return err
		}
	}
}
