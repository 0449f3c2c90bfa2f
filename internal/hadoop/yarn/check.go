package yarn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Cluster describes the resources of a YARN cluster.
type Cluster struct {
	Nodes int
	// MaxMiB is the memory of the largest container.
	MaxMiB   int64
	MaxCores int
	AllMiB   int64
	Each     []Node
	// Queues lists the queues that accept applications, sorted. It is nil if unknown.
	Queues []string
}

// Node describes the resources of a host.
type Node struct {
	MiB, FreeMiB int64
	FreeCores    int
}

// Cluster asks the resource manager for the cluster's resources.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	var nodes struct {
		Nodes *struct {
			Node []struct {
				State                                   string
				UsedMemoryMB, AvailMemoryMB             int64
				UsedVirtualCores, AvailableVirtualCores int
			}
		}
	}
	if err := c.call(ctx, "GET", "/ws/v1/cluster/nodes", nil, &nodes); err != nil {
		return nil, notManager(err)
	}
	k := &Cluster{}
	if nodes.Nodes != nil {
		for _, n := range nodes.Nodes.Node {
			if n.State != "RUNNING" {
				continue
			}
			k.Nodes++
			k.Each = append(k.Each, Node{MiB: n.UsedMemoryMB + n.AvailMemoryMB, FreeMiB: n.AvailMemoryMB,
				FreeCores: n.AvailableVirtualCores})
			k.AllMiB += n.UsedMemoryMB + n.AvailMemoryMB
			k.MaxMiB = max(k.MaxMiB, n.UsedMemoryMB+n.AvailMemoryMB)
			k.MaxCores = max(k.MaxCores, n.UsedVirtualCores+n.AvailableVirtualCores)
		}
	}
	var scheduler map[string]any
	if err := c.call(ctx, "GET", "/ws/v1/cluster/scheduler", nil, &scheduler); err != nil {
		return nil, notManager(err)
	}
	k.Queues = leafQueues(scheduler)
	slices.Sort(k.Queues)
	return k, nil
}

// notManager returns the error for a server without such pages.
func notManager(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Status == 404 {
		return fmt.Errorf("%w: what is there has no page /ws/v1/cluster; a name node's or node manager's port?",
			ErrUnreachable)
	}
	return err
}

// leafQueues returns the queues without subqueues in a scheduler's description. The scheduler is
// the capacity scheduler (queueName, queues.queue) or the fair one (queueName, childQueues).
func leafQueues(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, leafQueues(e)...)
		}
	case map[string]any:
		below := []string{}
		for _, k := range sortedKeys(v) {
			switch k {
			case "scheduler", "schedulerInfo", "queues", "queue", "childQueues", "rootQueue":
				below = append(below, leafQueues(v[k])...)
			}
		}
		name, _ := v["queueName"].(string)
		if len(below) == 0 && name != "" {
			return []string{name}
		}
		return below
	}
	return out
}

// maxNamed bounds the number of queues that an error lists.
const maxNamed = 12

// Check returns a one-line error for a service that could never run on this cluster. It is called
// before anything is written.
func (k *Cluster) Check(s Spec) error {
	if k.Nodes == 0 {
		return errors.New("the cluster has no node manager that runs: see `yarn node -list -all`")
	}
	if s.Queue != "" && k.Queues != nil && !slices.ContainsFunc(k.Queues,
		func(q string) bool { return sameQueue(q, s.Queue) }) {
		known := k.Queues
		more := ""
		if len(known) > maxNamed {
			known, more = known[:maxNamed], ", ..."
		}
		return fmt.Errorf("queue %q does not exist: there are %s%s", s.Queue, strings.Join(known, ", "), more)
	}
	for _, role := range Roles() {
		size := s.Sizes[role]
		if size.Count > 0 && MiB(size.Bytes) > k.MaxMiB {
			return fmt.Errorf("a %s of %d MiB is too large for the cluster: its largest node has %d MiB; ask for less "+
				"memory or fewer slots", role, MiB(size.Bytes), k.MaxMiB)
		}
		if size.Count > 0 && size.Cores > k.MaxCores {
			return fmt.Errorf("a %s of %d cores is too large for the cluster: its largest node has %d", role, size.Cores,
				k.MaxCores)
		}
	}
	if _, bytes := s.Total(); MiB(bytes) > k.AllMiB {
		return fmt.Errorf("%d MiB in all are too much for the cluster: %s %d MiB; ask for %s", MiB(bytes), k.nodesHave(),
			k.AllMiB, k.less(s))
	}
	return nil
}

// nodesHave returns the beginning of a phrase about all nodes.
func (k *Cluster) nodesHave() string {
	if k.Nodes == 1 {
		return "its node has"
	}
	return fmt.Sprintf("its %d nodes have", k.Nodes)
}

// less suggests a smaller service if the requested one is too large as a whole.
func (k *Cluster) less(s Spec) string {
	_, all := s.Total()
	w := s.Sizes[Worker]
	each := MiB(w.Bytes)
	rest := MiB(all) - int64(w.Count)*each
	if room := k.AllMiB - rest; each > 0 && room >= each {
		return fmt.Sprintf("at most ‹workers=%d›, or less memory for each (‹worker-memory›)", room/each)
	}
	return fmt.Sprintf("less memory: ‹worker-memory› (now %d MiB), ‹store-memory› (%d), ‹coordinator-memory› (%d)", each,
		MiB(s.Sizes[Store].Bytes), MiB(s.Sizes[Coordinator].Bytes))
}

// CheckMore checks a new number of a component's containers. If they could never run, it returns an
// error. wait is the reason why some must wait for resources, and empty if there are enough. It is
// based on memory, because not every scheduler counts cores.
func (k *Cluster) CheckMore(c Component, n int) (wait string, err error) {
	if c.Resource == nil || n <= len(c.Containers) {
		return "", nil
	}
	each, err := strconv.ParseInt(c.Resource.Memory, 10, 64)
	if err != nil || each <= 0 {
		return "", nil // YARN decides
	}
	var most, now, free int64
	cores := 0
	for _, h := range k.Each {
		most += h.MiB / each
		now += max(h.FreeMiB, 0) / each
		free += h.FreeMiB
		cores += h.FreeCores
	}
	size := fmt.Sprintf("containers of %d MiB and %s", each, vcores(c.Resource.CPUs))
	if n > c.Number && int64(n) > most {
		return "", fmt.Errorf("%d %s are too much for the cluster: %s %d MiB, which is room for %d at most; ask for fewer", n,
			size, k.nodesHave(), k.AllMiB, most)
	}
	if more := n - len(c.Containers); int64(more) > now {
		wait = fmt.Sprintf("%d more %s are wanted; %s %d MiB and %s free, which is room for %d now: the others wait until "+
			"something else ends", more, size, k.nodesHave(), free, vcores(cores), now)
	}
	return wait, nil
}

func vcores(n int) string {
	if n == 1 {
		return "1 vcore"
	}
	return fmt.Sprintf("%d vcores", n)
}

// sameQueue reports whether a queue's short name or path is the requested queue.
func sameQueue(have, want string) bool {
	return have == want || base(strings.ReplaceAll(have, ".", "/")) == want || strings.HasSuffix(want, "."+have)
}

// Application is a run of a service, as the resource manager describes it.
type Application struct {
	ID          string `json:"id"`
	State       string `json:"state"`
	FinalStatus string `json:"finalStatus"`
	Diagnostics string `json:"diagnostics"`
	Queue       string `json:"queue"`
}

// serviceType is YARN's type of applications that are services.
const serviceType = "yarn-service"

// Application describes the newest run of a service. It is nil if none is known.
func (c *Client) Application(ctx context.Context, name string) (*Application, error) {
	var doc struct {
		Apps *struct {
			App []struct {
				Application
				Name        string `json:"name"`
				StartedTime int64  `json:"startedTime"`
			}
		}
	}
	var raw json.RawMessage
	if err := c.call(ctx, "GET", "/ws/v1/cluster/apps?applicationTypes="+serviceType, nil, &raw); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("list of applications: %w", err)
	}
	var newest *Application
	var started int64
	if doc.Apps != nil {
		for i := range doc.Apps.App {
			a := &doc.Apps.App[i]
			if a.Name == name && a.StartedTime >= started {
				newest, started = &a.Application, a.StartedTime
			}
		}
	}
	return newest, nil
}

// Dead reports whether the run has ended.
func (a *Application) Dead() bool {
	return a.State == "FAILED" || a.State == "KILLED" || a.State == "FINISHED"
}

// Why returns the first line of YARN's diagnostics.
func (a *Application) Why() string {
	line, _, _ := strings.Cut(strings.TrimSpace(a.Diagnostics), "\n")
	return strings.TrimSpace(line)
}
