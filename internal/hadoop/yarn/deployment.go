package yarn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"taxon/internal/cluster/client"
	"taxon/internal/fs"
	"taxon/internal/retry"
	"taxon/internal/ui/format"
	"taxon/internal/ui/progress"
)

// Options select a cluster, and configure calls to it and to YARN.
type Options struct {
	// Verb is the prefix of errors of calls to the coordinator.
	Verb string
	// Name is the name of the service.
	Name string
	// Dir is the cluster's folder in HDFS. If it is empty, it is the running service's, or else
	// hdfs:///user/USER/taxon/NAME.
	Dir string
	// Manager is the URL of the resource manager. If it is empty, it is taken from the
	// configuration.
	Manager string
	// Command is Hadoop's command, for resource managers whose service API is closed.
	Command string
	// Wait bounds the time until things are ready.
	Wait time.Duration
	UI   progress.Reporter
}

// Problem is an error that names its subject. It does not name the verb, which the caller puts
// before it.
type Problem struct {
	error
	// Usage reports that the user can correct it: an option, the folder, or a refusal by YARN.
	Usage bool
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.error }

// refuse returns a Problem that the user can correct.
func refuse(format string, args ...any) error { return &Problem{fmt.Errorf(format, args...), true} }

// refused returns a Problem for a refusal by YARN, which the user must correct.
func refused(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &Problem{err, true}
}

// Deployment is a cluster that is a service of YARN, with its folder in HDFS.
type Deployment struct {
	Options
	user string
	// guessed reports that Dir was not given.
	guessed  bool
	manager  *Client
	services Services
}

// Open finds a cluster's service and folder. If they are unusable, the error is a Problem.
func Open(ctx context.Context, o Options) (*Deployment, error) {
	d, err := newDeployment(o)
	if err == nil {
		d.manager, _, err = NewClient(o.Manager, d.user)
	}
	if err == nil {
		err = d.findServices(ctx)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// newDeployment checks the options and fills in defaults.
func newDeployment(o Options) (*Deployment, error) {
	d := &Deployment{Options: o, guessed: o.Dir == ""}
	if err := CheckName(o.Name); err != nil {
		return nil, refuse("‹name=%w›", err)
	}
	if d.user = os.Getenv("HADOOP_USER_NAME"); d.user == "" {
		u, err := user.Current()
		if err != nil {
			return nil, refuse("this process's user has no name: set HADOOP_USER_NAME")
		}
		d.user = u.Username
	}
	if d.guessed {
		d.Dir = fs.Scheme + "/user/" + d.user + "/taxon/" + o.Name
	}
	if !fs.Shared(d.Dir) {
		return nil, refuse("‹dir=%s›: must be a folder in HDFS, hdfs://...: the containers run on any host",
			format.QuoteIfNeeded(d.Dir))
	}
	d.Dir = fs.Clean(d.Dir)
	return d, nil
}

// confDir returns the folder of Hadoop's configuration. It is empty if there is none.
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

// NewClient returns a client of the resource manager at url. If url is empty, it is the resource
// manager in Hadoop's configuration. NewClient also returns this configuration, which it finds by
// the environment. If none is known, the error is ErrNotConfigured.
func NewClient(url, user string) (*Client, Conf, error) {
	conf, err := ReadConf(confDir())
	if err != nil {
		return nil, nil, refuse("%w", err)
	}
	c := &Client{User: user}
	if url != "" {
		if err := CheckURL(url); err != nil {
			return nil, nil, refuse("‹resource-manager=%w›", err)
		}
		c.URLs = []string{url}
	} else if c.URLs, err = conf.ResourceManagers(); err != nil {
		return nil, nil, refuse("%w: set HADOOP_CONF_DIR to the folder of yarn-site.xml, or give "+
			"‹resource-manager=http://HOST:8088›", err)
	}
	if conf.Kerberos() {
		c.Negotiate, c.User = fs.Negotiate, ""
	}
	return c, conf, nil
}

// findServices selects how the service is managed. This is by the resource manager's API or, if
// that is closed, by Hadoop's command.
func (d *Deployment) findServices(ctx context.Context) error {
	d.services = d.manager
	_, err := d.manager.Status(ctx, d.Name)
	if err == nil || errors.Is(err, ErrNoService) {
		return nil
	}
	if _, err := d.manager.Cluster(ctx); err != nil {
		return refused(err) // the server is no resource manager
	}
	if !errors.Is(err, ErrClosed) {
		// Perhaps only the service's master is away, so do not refuse everything.
		return nil
	}
	cli, missing := NewCommand(d.Command, confDir(), d.manager)
	if missing != nil {
		return refused(errors.Join(err, missing))
	}
	d.services = cli
	return nil
}

// status describes the service. It also finds the cluster's folder if the user did not give it.
// While the service has no master, it reads YARN's own file of the service.
func (d *Deployment) status(ctx context.Context) (*Service, error) {
	s, err := d.services.Status(ctx, d.Name)
	if errors.Is(err, ErrNoService) || !d.guessed {
		return s, err
	}
	dir := ""
	if err == nil {
		dir = s.Folder()
	}
	if dir == "" {
		dir = d.kept(ctx).Folder()
	}
	if dir != "" {
		d.Dir, d.guessed = fs.Clean(dir), false
	}
	return s, err
}

// kept reads YARN's own file of the service, in its user's home. It is nil if that cannot be read.
func (d *Deployment) kept(ctx context.Context) *Service {
	s := &Service{}
	data, err := fs.ReadFile(ctx, fs.Scheme+"/user/"+d.user+"/.yarn/services/"+d.Name+"/"+d.Name+".json")
	if err != nil || json.Unmarshal(data, s) != nil {
		return &Service{}
	}
	return s
}

// needService returns the error for a service that does not exist.
func (d *Deployment) needService(err error) error {
	if errors.Is(err, ErrNoService) {
		return refuse("YARN knows no service %s of yours: `taxon yarn up ‹name=%s›` starts one", d.Name, d.Name)
	}
	return refused(err)
}

// dial connects to the cluster's coordinator.
func (d *Deployment) dial(ctx context.Context) (*client.Client, error) {
	return client.Dial(ctx, client.Options{Verb: d.Verb, Coordinator: d.place(), Patience: time.Second})
}

// pauseEvery is the pause between requests to YARN and the coordinator while waiting.
const pauseEvery = 300 * time.Millisecond

// await calls done until done reports readiness or fails, or until the time is over. If the time is
// over, the error says what is missing.
func (d *Deployment) await(ctx context.Context, done func(ctx context.Context) (ready bool, missing string,
	err error)) error {
	for deadline := time.Now().Add(d.Wait); ; {
		ready, missing, err := done(ctx)
		if err != nil || ready {
			return err
		}
		if time.Now().After(deadline) {
			return &Problem{fmt.Errorf("not ready after %v: %s; `taxon yarn status ‹name=%s›` shows it", d.Wait, missing,
				d.Name), false}
		}
		if err := retry.For(ctx, pauseEvery); err != nil {
			return err
		}
	}
}
