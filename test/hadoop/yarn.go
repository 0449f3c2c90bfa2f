package hadoop

import (
	"archive/zip"
	"context"
	_ "embed" // testdata/loopback.c
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// YARNOptions configures the services besides HDFS. Each of YARN, Services and History starts a
// resource manager and a node manager.
type YARNOptions struct {
	YARN bool

	// Services starts the REST service API, and the ZooKeeper that it needs.
	Services bool

	// History starts MapReduce's history server.
	History bool

	// NodeMB is the memory that the node manager offers, in MiB. 0 stands for 6144.
	NodeMB int

	// Cores is the number of cores that the node manager offers. 0 stands for 16.
	Cores int

	// Yarn holds further properties of yarn-site.xml.
	Yarn map[string]string

	// MapRed holds further properties of mapred-site.xml.
	MapRed map[string]string
}

func (o YARNOptions) yarn() bool { return o.YARN || o.Services || o.History }

// These are the names of YARN's daemons, for StartDaemon and Kill.
const (
	ResourceManager = "resourcemanager"
	NodeManager     = "nodemanager"
	zooKeeper       = "zookeeper"
	history         = "historyserver"
	sweeper         = "sweeper"
)

var yarnDaemons = map[string]string{
	ResourceManager: "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
	NodeManager:     "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
	zooKeeper:       "org.apache.zookeeper.server.ZooKeeperServerMain",
	history:         "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer",
}

var yarnPortNames = []string{"rm", "rm-scheduler", "rm-tracker", "rm-admin", "rm-web", "nm", "nm-localizer", "nm-web",
	"nm-collector",
	"shuffle", "zookeeper", "jhs", "jhs-web", "jhs-admin"}

//go:embed testdata/loopback.c
var loopback []byte

// ResourceManagerURL returns the address of the resource manager's REST API.
func (c *Cluster) ResourceManagerURL() string { return "http://" + c.at("rm-web") }

func (c *Cluster) at(port string) string { return "127.0.0.1:" + strconv.Itoa(c.yarnPorts[port]) }

// yarnDir returns a folder for YARN below the cluster's.
func (c *Cluster) yarnDir(name string) string { return filepath.Join(c.dir, "yarn", name) }

// configureYARN writes YARN's configuration, in addition to that of HDFS.
func (c *Cluster) configureYARN(ctx context.Context) error {
	if !c.options.yarn() {
		return nil
	}
	ports, err := freePorts(len(yarnPortNames))
	if err != nil {
		return err
	}
	c.yarnPorts = map[string]int{}
	for i, name := range yarnPortNames {
		c.yarnPorts[name] = ports[i]
	}
	for _, d := range []string{"local", "logs", "attributes", "recovery", "state", "zookeeper", "service-lib"} {
		if err := os.MkdirAll(c.yarnDir(d), 0o777); err != nil {
			return err
		}
	}
	queue := map[string]string{
		"yarn.scheduler.capacity.root.queues": "default", "yarn.scheduler.capacity.root.default.capacity": "100",
		"yarn.scheduler.capacity.maximum-am-resource-percent": "0.7", "yarn.scheduler.capacity.node-locality-delay": "-1",
	}
	keeper := fmt.Sprintf("dataDir=%s\nclientPortAddress=127.0.0.1\nclientPort=%d\ntickTime=2000\nmaxClientCnxns=0\nadmin.enableServer=false\n",
		c.yarnDir("zookeeper"), c.yarnPorts["zookeeper"])
	return errors.Join(
		WriteConf(filepath.Join(c.Conf(), "yarn-site.xml"), c.yarnSite()),
		WriteConf(filepath.Join(c.Conf(), "mapred-site.xml"), c.mapredSite()),
		WriteConf(filepath.Join(c.Conf(), "capacity-scheduler.xml"), queue),
		os.WriteFile(filepath.Join(c.Conf(), "zoo.cfg"), []byte(keeper), 0o666),
		c.writeServiceLib(), c.compileLoopback(ctx))
}

func (c *Cluster) taskJava() string { return "-Xmx200m " + strings.Join(c.javaFlags(), " ") }

// yarnSite returns YARN's properties. All parts survive restarts (recovery); intervals and limits
// are short, to save time.
func (c *Cluster) yarnSite() map[string]string {
	mb, cores := strconv.Itoa(max(c.options.NodeMB, 0)), strconv.Itoa(max(c.options.Cores, 0))
	if c.options.NodeMB == 0 {
		mb = "6144"
	}
	if c.options.Cores == 0 {
		cores = "16"
	}
	p := map[string]string{
		"yarn.resourcemanager.hostname": "127.0.0.1", "yarn.resourcemanager.bind-host": "127.0.0.1",
		"yarn.resourcemanager.address": c.at("rm"), "yarn.resourcemanager.scheduler.address": c.at("rm-scheduler"),
		"yarn.resourcemanager.resource-tracker.address": c.at("rm-tracker"),
		"yarn.resourcemanager.admin.address":            c.at("rm-admin"),
		"yarn.resourcemanager.webapp.address":           c.at("rm-web"),
		"yarn.nodemanager.hostname":                     "127.0.0.1", "yarn.nodemanager.bind-host": "127.0.0.1",
		"yarn.nodemanager.address":           c.at("nm"),
		"yarn.nodemanager.localizer.address": c.at("nm-localizer"), "yarn.nodemanager.webapp.address": c.at("nm-web"),
		"yarn.nodemanager.collector-service.address": c.at("nm-collector"),
		"yarn.nodemanager.local-dirs":                c.yarnDir("local"), "yarn.nodemanager.log-dirs": c.yarnDir("logs"),
		"yarn.nodemanager.aux-services":                         "mapreduce_shuffle",
		"yarn.nodemanager.aux-services.mapreduce_shuffle.class": "org.apache.hadoop.mapred.ShuffleHandler",
		"yarn.nodemanager.resource.memory-mb":                   mb, "yarn.nodemanager.resource.cpu-vcores": cores,
		"yarn.scheduler.minimum-allocation-mb": "64", "yarn.scheduler.maximum-allocation-mb": mb,
		"yarn.scheduler.maximum-allocation-vcores": cores,
		"yarn.nodemanager.pmem-check-enabled":      "false", "yarn.nodemanager.vmem-check-enabled": "false",
		"yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
		"yarn.nodemanager.sleep-delay-before-sigkill.ms":                                "250",
		"yarn.nodemanager.heartbeat.interval-ms":                                        "1000",
		"yarn.resourcemanager.nodemanagers.heartbeat-interval-ms":                       "200",
		"yarn.resourcemanager.scheduler.class":                                          "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
		"yarn.nodemanager.container-localizer.java.opts": "-Xmx128m -XX:+UseSerialGC " +
			"-XX:TieredStopAtLevel=1",
		"yarn.nodemanager.container-monitor.interval-ms": "1000",
		"yarn.node-attribute.fs-store.root-dir":          "file://" + c.yarnDir("attributes"),
		"yarn.nodemanager.recovery.enabled":              "true",
		"yarn.nodemanager.recovery.dir":                  c.yarnDir("recovery"),
		"yarn.resourcemanager.recovery.enabled":          "true",
		"yarn.resourcemanager.store.class":               "org.apache.hadoop.yarn.server.resourcemanager.recovery.LeveldbRMStateStore",
		"yarn.resourcemanager.leveldb-state-store.path":  c.yarnDir("state"),
		"yarn.resourcemanager.connect.retry-interval.ms": "1000",
		// the tests kill masters in quick succession
		"yarn.resourcemanager.am.max-attempts":                             "4",
		"yarn.timeline-service.enabled":                                    "false",
		"yarn.webapp.ui2.enable":                                           "false",
		"yarn.acl.enable":                                                  "false",
		"yarn.log-aggregation-enable":                                      "false",
		"yarn.application.classpath":                                       c.ClassPath(),
		"yarn.nodemanager.env-whitelist":                                   "JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG,TZ,LD_PRELOAD",
		"yarn.webapp.api-service.enable":                                   strconv.FormatBool(c.options.Services),
		"yarn.service.am-resource.memory":                                  "256",
		"yarn.service.am.java.opts":                                        c.taskJava(),
		"yarn.service.container-failure.retry-interval-ms":                 "1000",
		"yarn.service.readiness-check-interval.seconds":                    "1",
		"yarn.service.node-blacklist.threshold":                            "10000", // there is no other node
		"yarn.service.container-failure-per-component.threshold":           "10000",
		"hadoop.registry.zk.quorum":                                        c.at("zookeeper"),
		"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
	}
	maps.Copy(p, c.options.Yarn)
	return p
}

func (c *Cluster) mapredSite() map[string]string {
	p := map[string]string{
		"mapreduce.framework.name": "yarn", "mapreduce.shuffle.port": strconv.Itoa(c.yarnPorts["shuffle"]),
		"mapreduce.jobhistory.address": c.at("jhs"), "mapreduce.jobhistory.webapp.address": c.at("jhs-web"),
		"mapreduce.jobhistory.admin.address": c.at("jhs-admin"), "mapreduce.jobhistory.bind-host": "127.0.0.1",
		"yarn.app.mapreduce.am.staging-dir": "/tmp/hadoop-yarn/staging", "mapreduce.application.classpath": c.ClassPath(),
		"yarn.app.mapreduce.am.resource.mb": "384", "yarn.app.mapreduce.am.command-opts": c.taskJava(),
		"mapreduce.map.memory.mb": "256", "mapreduce.reduce.memory.mb": "256",
		"mapreduce.map.java.opts": c.taskJava(), "mapreduce.reduce.java.opts": c.taskJava(),
		"mapreduce.task.io.sort.mb": "32", "mapreduce.reduce.shuffle.parallelcopies": "2",
		"mapreduce.map.speculative": "false", "mapreduce.reduce.speculative": "false",
		"yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": "200",
		"mapreduce.client.progressmonitor.pollinterval":         "200",
		"mapreduce.client.completion.pollinterval":              "200",
		"mapreduce.jobtracker.staging.root.dir":                 filepath.Join(c.dir, "tmp", "staging"),
		"mapreduce.cluster.local.dir":                           filepath.Join(c.dir, "tmp", "mapred"),
		"mapreduce.jvm.add-opens-as-default":                    "false",
	}
	maps.Copy(p, c.options.MapRed)
	return p
}

// writeServiceLib creates the only jar on the class path of a service's master. Its manifest refers
// to all others, while an installation would upload 100 MB.
func (c *Cluster) writeServiceLib() error {
	jars, err := filepath.Glob(filepath.Join(c.lib, "*.jar"))
	if err != nil {
		return err
	}
	manifest := "Manifest-Version: 1.0\r\nClass-Path:"
	for _, j := range jars {
		manifest += " file:" + j
	}
	var b strings.Builder
	for line := range strings.SplitSeq(manifest, "\r\n") {
		for ; len(line) > 70; line = " " + line[70:] { // lines of a manifest have at most 72 bytes
			b.WriteString(line[:70] + "\r\n")
		}
		b.WriteString(line + "\r\n")
	}
	f, err := os.Create(filepath.Join(c.yarnDir("service-lib"), "hadoop-paths.jar"))
	if err != nil {
		return err
	}
	defer f.Close()
	z := zip.NewWriter(f)
	w, err := z.Create("META-INF/MANIFEST.MF")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, b.String())
	return errors.Join(err, z.Close(), f.Close())
}

// compileLoopback builds the library that keeps containers on loopback.
func (c *Cluster) compileLoopback(ctx context.Context) error {
	source := c.yarnDir("loopback.c")
	if err := os.WriteFile(source, loopback, 0o666); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cc", "-O1", "-shared", "-fPIC", "-o", c.yarnDir("loopback.so"), source,
		"-ldl").CombinedOutput(); err != nil {
		return fmt.Errorf("YARN on loopback needs a C compiler: %w: %.500s", err, out)
	}
	return nil
}

// environment returns the environment of a daemon. YARN's daemons pass it on to their containers.
func (c *Cluster) environment(name string) []string {
	env := os.Environ()
	if yarnDaemons[name] == "" {
		return env
	}
	env = append(env, "HADOOP_CONF_DIR="+c.Conf(), "LD_PRELOAD="+c.yarnDir("loopback.so"))
	if os.Getenv("JAVA_HOME") == "" {
		if at, err := exec.LookPath("java"); err == nil {
			if at, err = filepath.EvalSymlinks(at); err == nil {
				env = append(env, "JAVA_HOME="+filepath.Dir(filepath.Dir(at)))
			}
		}
	}
	return env
}

// yarnJava returns the arguments that run one of YARN's daemons.
func (c *Cluster) yarnJava(name, class string) []string {
	args := []string{}
	if name == zooKeeper {
		args = append(args, filepath.Join(c.Conf(), "zoo.cfg"))
	}
	return append([]string{"-Dservice.libdir=" + c.yarnDir("service-lib"), "-Dzookeeper.admin.enableServer=false",
		"-Dhadoop.log.dir=" + filepath.Join(c.dir, "logs")}, c.java(name, class, args...)...)
}

// sweep kills the remaining processes of containers once its input ends: they work in folders of
// this cluster, and outlive a killed node manager. It also does so when all of the tests' processes
// are signalled, because the node manager may still start something.
const sweep = `trap '' INT TERM HUP; read -r line; for i in 1 2 3 4 5; do sleep 0.2; for p in /proc/[0-9]*; do
case $(readlink $p/cwd) in "$0"/*) kill -9 ${p#/proc/};; esac; done; done`

// startYARN starts the requested daemons.
func (c *Cluster) startYARN(ctx context.Context) error {
	if !c.options.yarn() {
		return nil
	}
	local, err := filepath.EvalSymlinks(c.yarnDir("local"))
	if err != nil {
		return err
	}
	if err := c.start(sweeper, exec.Command("sh", "-c", sweep, local)); err != nil {
		return err
	}
	names := []string{ResourceManager, NodeManager}
	if c.options.Services {
		if err := c.StartDaemon(zooKeeper); err != nil {
			return err
		}
		if err := c.listening(ctx, "zookeeper"); err != nil {
			return err
		}
	}
	if c.options.History {
		names = append(names, history)
	}
	for _, name := range names {
		if err := c.StartDaemon(name); err != nil {
			return err
		}
	}
	return nil
}

// listening waits until a port accepts connections.
func (c *Cluster) listening(ctx context.Context, port string) error {
	return c.until(ctx, port, func() bool {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.at(port))
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// YARNReady waits until the resource manager knows the node manager.
func (c *Cluster) YARNReady(ctx context.Context) error {
	err := c.until(ctx, "YARN", func() bool {
		var doc struct {
			Metrics struct{ ActiveNodes int } `json:"clusterMetrics"`
		}
		return c.ask(ctx, "/ws/v1/cluster/metrics", &doc) == nil && doc.Metrics.ActiveNodes > 0
	})
	if err == nil && c.running[history] != nil {
		err = c.listening(ctx, "jhs")
	}
	return err
}

// ask reads a document of the resource manager.
func (c *Cluster) ask(ctx context.Context, path string, doc any) error {
	req, err := http.NewRequestWithContext(ctx, "GET", c.ResourceManagerURL()+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(doc)
}

func (c *Cluster) until(ctx context.Context, what string, ready func() bool) error {
	for !ready() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not come up (logs in %s): %w", what, filepath.Join(c.dir, "logs"), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// Containers returns the processes in YARN's containers, with process id and command line, in order
// of their ids. It returns only programs whose name begins with `name`.
func (c *Cluster) Containers(name string) (pids []int, lines []string, err error) {
	local, err := filepath.EvalSymlinks(c.yarnDir("local"))
	if err != nil {
		return nil, nil, err
	}
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, nil, err
	}
	found := map[int]string{}
	for _, p := range procs {
		cwd, err := os.Readlink(filepath.Join(p, "cwd"))
		if err != nil || !strings.HasPrefix(cwd, local+"/") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(p, "cmdline"))
		words := strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
		pid, convErr := strconv.Atoi(filepath.Base(p))
		if err == nil && convErr == nil && strings.HasPrefix(filepath.Base(words[0]), name) {
			found[pid] = strings.Join(words, " ")
		}
	}
	pids = slices.Sorted(maps.Keys(found))
	for _, p := range pids {
		lines = append(lines, found[p])
	}
	return pids, lines, nil
}

// CloseServiceAPI restarts the resource manager without its API for services, as in most clusters.
func (c *Cluster) CloseServiceAPI(ctx context.Context) error {
	c.Kill(ResourceManager)
	site := c.yarnSite()
	site["yarn.webapp.api-service.enable"] = "false"
	if err := WriteConf(filepath.Join(c.Conf(), "yarn-site.xml"), site); err != nil {
		return err
	}
	if err := c.StartDaemon(ResourceManager); err != nil {
		return err
	}
	return c.YARNReady(ctx)
}

// WriteCommand writes a replacement for the command yarn of an installation: it runs the same
// class, for `yarn --config DIR app ...`.
func (c *Cluster) WriteCommand(path string) error {
	flags := append(c.javaFlags(), "-Dservice.libdir="+c.yarnDir("service-lib"))
	script := "#!/bin/sh\nconf=$2; shift 2\nexec java -Xmx256m '" + strings.Join(flags, "' '") + "' -cp \"$conf:" +
		filepath.Join(c.lib, "*") +
		"\" org.apache.hadoop.yarn.client.cli.ApplicationCLI \"$@\"\n"
	return os.WriteFile(path, []byte(script), 0o777)
}
