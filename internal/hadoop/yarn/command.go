package yarn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
)

// Services manages services. Client does this through the resource manager's REST API, and Command
// through Hadoop's own command.
type Services interface {
	// Launch starts a service.
	Launch(ctx context.Context, s *Service) error
	// Flex changes the number of a component's containers.
	Flex(ctx context.Context, name, component string, n int) error
	// Status describes a service. The error is ErrNoService if there is none.
	Status(ctx context.Context, name string) (*Service, error)
	// Destroy ends a service and removes its definition. The error is ErrNoService if there is
	// none.
	Destroy(ctx context.Context, name string) error
}

// Command manages services through the command yarn. Normally that command calls the REST API. With
// a certain property in its configuration it does itself what the resource manager would do: it
// uploads the definition and submits the master. So it runs with a copy of the configuration that
// has this property.
type Command struct {
	program string
	// conf is the folder of that configuration.
	conf   string
	client *Client
	// limit bounds a call.
	limit time.Duration
}

// adminProperty makes the command work without the API.
const (
	adminProperty = "yarn.application.admin.client.class.yarn-service"
	adminClass    = "org.apache.hadoop.yarn.service.client.ServiceClient"
)

// commandTimeout bounds a call. The command itself waits for a service's master without limit.
const commandTimeout = 2 * time.Minute

// NewCommand finds the command. c is used for the open part of the API.
func NewCommand(program, conf string, c *Client) (*Command, error) {
	at, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("or install Hadoop's command %s here (%w)", program, errors.Unwrap(err))
	}
	if conf == "" {
		return nil, fmt.Errorf("or set HADOOP_CONF_DIR, for %s", at)
	}
	return &Command{program: at, conf: conf, client: c, limit: commandTimeout}, nil
}

// run runs `yarn app ARGS` and returns its output.
func (c *Command) run(ctx context.Context, args ...string) (string, error) {
	dir, removed, err := fs.TempDir("yarn")
	if err != nil {
		return "", err
	}
	defer removed()
	if err := c.configure(dir); err != nil {
		return "", err
	}
	limited, done := context.WithTimeout(ctx, c.limit)
	defer done()
	cmd := exec.CommandContext(limited, c.program, append([]string{"--config", dir, "app"}, args...)...)
	cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+dir, "YARN_CONF_DIR="+dir)
	cmd.WaitDelay = time.Second // its children may hold its output open
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if limited.Err() != nil {
			return "", fmt.Errorf("%s app %s gave no answer in %v", filepath.Base(c.program), args[0], c.limit)
		}
		return out.String(), commandError(c.program, errs.String()+out.String(), err)
	}
	return out.String(), nil
}

// commandError finds the line with the reason in Hadoop's log.
func commandError(program, log string, err error) error {
	best := err.Error()
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if i := strings.Index(line, "Exception: "); i >= 0 {
			best = line[i+len("Exception: "):]
			break
		}
		if strings.Contains(line, " ERROR ") {
			_, best, _ = strings.Cut(line, " ERROR ")
		}
	}
	if strings.Contains(log, "doesn't exist") || strings.Contains(log, "does not exist") ||
		strings.Contains(log, "not found") {
		return fmt.Errorf("%w: %s", ErrNoService, best)
	}
	return fmt.Errorf("%s: %s", filepath.Base(program), best)
}

// configure copies the configuration and adds the property.
func (c *Command) configure(dir string) error {
	entries, err := vfs.OS.ReadDir(c.conf)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || e.Name() == "yarn-site.xml" {
			continue
		}
		data, err := vfs.ReadFile(vfs.OS, filepath.Join(c.conf, e.Name()))
		if err != nil {
			continue // Hadoop can't read it either
		}
		if err := vfs.WriteNew(vfs.OS, filepath.Join(dir, e.Name()), data, 0o700); err != nil {
			return err
		}
	}
	site, err := vfs.ReadFile(vfs.OS, filepath.Join(c.conf, "yarn-site.xml"))
	if errors.Is(err, os.ErrNotExist) {
		site, err = []byte("<configuration></configuration>"), nil
	}
	if err != nil {
		return err
	}
	end := bytes.LastIndex(site, []byte("</configuration>"))
	if end < 0 {
		return fmt.Errorf("%s: no </configuration> in it", filepath.Join(c.conf, "yarn-site.xml"))
	}
	property := "<property><name>" + adminProperty + "</name><value>" + adminClass + "</value></property>\n"
	site = append(append(bytes.Clone(site[:end]), property...), site[end:]...)
	return vfs.WriteNew(vfs.OS, filepath.Join(dir, "yarn-site.xml"), site, 0o600)
}

// Launch implements Services.
func (c *Command) Launch(ctx context.Context, s *Service) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	dir, done, err := fs.TempDir("yarn")
	if err != nil {
		return err
	}
	defer done()
	file := filepath.Join(dir, "service.json")
	if err := fs.WriteFile(file, data); err != nil {
		return err
	}
	_, err = c.run(ctx, "-launch", s.Name, file)
	return err
}

// Flex implements Services.
func (c *Command) Flex(ctx context.Context, name, component string, n int) error {
	_, err := c.run(ctx, "-flex", name, "-component", component, strconv.Itoa(n))
	return err
}

// Status implements Services.
func (c *Command) Status(ctx context.Context, name string) (*Service, error) {
	out, err := c.run(ctx, "-status", name)
	if err != nil {
		return nil, err
	}
	begin := strings.IndexByte(out, '{')
	var s Service
	if begin < 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoService, strings.TrimSpace(out))
	}
	if err := json.NewDecoder(strings.NewReader(out[begin:])).Decode(&s); err != nil {
		return nil, fmt.Errorf("what %s says of service %s: %w", c.program, name, err)
	}
	return &s, nil
}

// Destroy implements Services.
func (c *Command) Destroy(ctx context.Context, name string) error {
	if _, err := c.run(ctx, "-stop", name); err != nil && ctx.Err() != nil {
		// A service that does not run cannot be stopped, only removed.
		return err
	}
	_, err := c.run(ctx, "-destroy", name)
	return err
}
