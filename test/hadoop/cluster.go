package hadoop

import (
	"context"
	"encoding/json"
	"encoding/xml"
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
	"syscall"
	"time"
)

// Options configures a cluster.
type Options struct {
	// DataNodes is the number of data nodes, at least 1.
	DataNodes int

	// Replication is the number of replicas of a block, at least 1.
	Replication int

	// HDFS holds further properties of hdfs-site.xml.
	HDFS map[string]string

	// Protection is, for a cluster with Kerberos, authentication, integrity or privacy. It is empty
	// for a cluster without.
	Protection string
	YARNOptions
}

// Cluster is an HDFS on this machine, optionally with YARN. Each name node, data node and so on is
// a process of its own that listens on loopback only and ends with the process that started it.
type Cluster struct {
	dir, lib  string
	nameNode  int // ports
	webPort   int
	options   Options
	nodePorts [][3]int
	yarnPorts map[string]int
	running   map[string]*daemon
}

// daemon is a shell that runs a Java process and kills it (-9) when the shell's input ends.
type daemon struct {
	cmd   *exec.Cmd
	input io.Closer
}

// keeper ends the process when its input ends or when it is signalled, even before the process id
// is known.
const keeper = `trap 'e=1; [ "$p" ] && { kill -9 $p; exit; }' INT TERM HUP; "$@" </dev/null & p=$!; [ "$e" ] || read -r line; kill -9 $p; wait $p 2>/dev/null`

// Start formats and starts a cluster in an empty folder and waits until it is writable. The caller
// stops it by Stop.
func Start(ctx context.Context, lib, dir string, o Options) (*Cluster, error) {
	c := &Cluster{dir: dir, lib: lib, options: o, running: map[string]*daemon{}}
	ports, err := freePorts(2 + 3*o.DataNodes)
	if err != nil {
		return nil, err
	}
	c.nameNode, c.webPort = ports[0], ports[1]
	for i := range o.DataNodes {
		c.nodePorts = append(c.nodePorts, [3]int(ports[2+3*i:]))
	}
	if err := c.configure(); err != nil {
		return nil, err
	}
	if err := c.configureYARN(ctx); err != nil {
		return nil, err
	}
	if err := c.startKDC(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	format := exec.CommandContext(ctx, "java", c.java("format", "org.apache.hadoop.hdfs.server.namenode.NameNode",
		"-format", "-nonInteractive")...)
	if out, err := format.CombinedOutput(); err != nil {
		c.Stop()
		return nil, fmt.Errorf("format: %w: %.500s", err, out)
	}
	err = c.StartDaemon("namenode")
	for i := range o.DataNodes {
		if err == nil {
			err = c.StartDaemon(DataNode(i))
		}
	}
	if err == nil {
		err = c.startYARN(ctx)
	}
	if err == nil {
		err = c.Ready(ctx)
	}
	if err == nil && c.options.yarn() {
		err = c.YARNReady(ctx)
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// DataNode returns the name of the i-th data node, from 0.
func DataNode(i int) string { return "datanode" + strconv.Itoa(i) }

// URL returns the path of a file in the cluster.
func (c *Cluster) URL(path string) string {
	return fmt.Sprintf("hdfs://127.0.0.1:%d%s", c.nameNode, path)
}

// Conf returns the folder of the configuration, for HADOOP_CONF_DIR.
func (c *Cluster) Conf() string { return filepath.Join(c.dir, "conf") }

// WebPort returns the port of the name node's web pages.
func (c *Cluster) WebPort() int { return c.webPort }

// DataPort returns the port on which the i-th data node serves blocks.
func (c *Cluster) DataPort(i int) int { return c.nodePorts[i][0] }

// freePorts returns ports on which no process listens.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// configure writes the configuration. The hosts file keeps Java from using DNS; the folders webapps
// replace pages that the jars on Maven Central lack.
func (c *Cluster) configure() error {
	for _, d := range []string{"conf/webapps/hdfs", "conf/webapps/datanode", "tmp", "logs"} {
		if err := os.MkdirAll(filepath.Join(c.dir, d), 0o777); err != nil {
			return err
		}
	}
	hosts := "127.0.0.1 localhost\n"
	if h, err := os.Hostname(); err == nil && h != "localhost" {
		hosts += "127.0.0.1 " + h + "\n"
	}
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	core := map[string]string{"fs.defaultFS": "hdfs://" + at(c.nameNode), "hadoop.tmp.dir": filepath.Join(c.dir, "tmp")}
	hdfs := map[string]string{
		"dfs.namenode.name.dir":    "file://" + filepath.Join(c.dir, "name"),
		"dfs.replication":          strconv.Itoa(c.options.Replication),
		"dfs.namenode.rpc-address": at(c.nameNode), "dfs.namenode.rpc-bind-host": "127.0.0.1",
		"dfs.namenode.http-address": at(c.webPort), "dfs.namenode.http-bind-host": "127.0.0.1",
		"dfs.namenode.datanode.registration.ip-hostname-check": "false",
		"dfs.namenode.safemode.extension":                      "0", "dfs.namenode.safemode.min.datanodes": "1",
		"dfs.heartbeat.interval": "1", "dfs.namenode.heartbeat.recheck-interval": "2000",
		"dfs.namenode.replication.min": "1", "dfs.namenode.fs-limits.min-block-size": "4096",
		"dfs.namenode.redundancy.interval.seconds": "1", "dfs.namenode.handler.count": "8",
		"dfs.disk.balancer.enabled": "false", "dfs.datanode.du.reserved": "0",
	}
	c.secure(core, hdfs)
	maps.Copy(hdfs, c.options.HDFS)
	log := "hadoop.root.logger=INFO,console\nlog4j.rootLogger=${hadoop.root.logger}\nlog4j.appender.console=org.apache.log4j.ConsoleAppender\n" +
		"log4j.appender.console.target=System.err\nlog4j.appender.console.layout=org.apache.log4j.PatternLayout\n" +
		"log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n\n"
	return errors.Join(
		os.WriteFile(filepath.Join(c.dir, "conf/hosts"), []byte(hosts), 0o666),
		os.WriteFile(filepath.Join(c.dir, "conf/log4j.properties"), []byte(log), 0o666),
		WriteConf(filepath.Join(c.dir, "conf/core-site.xml"), core),
		WriteConf(filepath.Join(c.dir, "conf/hdfs-site.xml"), hdfs))
}

// WriteConf writes a file of Hadoop properties.
func WriteConf(path string, properties map[string]string) error {
	type property struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	}
	doc := struct {
		XMLName  xml.Name   `xml:"configuration"`
		Property []property `xml:"property"`
	}{}
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		doc.Property = append(doc.Property, property{k, properties[k]})
	}
	b, err := xml.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), b...), 0o666)
}

// java returns the arguments that run a Hadoop class.
func (c *Cluster) java(name, class string, args ...string) []string {
	out := append([]string{"-Xmx256m", "-Djava.io.tmpdir=" + filepath.Join(c.dir, "tmp"), "-Dtaxon.daemon=" + name},
		c.javaFlags()...)
	out = append(out, "-cp", c.ClassPath(), class)
	return append(out, args...)
}

// ClassPath returns the class path of Hadoop and the cluster's configuration.
func (c *Cluster) ClassPath() string { return c.Conf() + ":" + filepath.Join(c.lib, "*") }

// javaFlags returns the flags of every Java process of the cluster.
func (c *Cluster) javaFlags() []string {
	out := []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k", "-Djava.net.preferIPv4Stack=true",
		"-Djdk.net.hosts.file=" + filepath.Join(c.Conf(), "hosts")}
	for _, p := range []string{"io", "lang", "lang.reflect", "math", "net", "nio", "text", "util", "util.concurrent",
		"util.zip"} {
		out = append(out, "--add-opens=java.base/java."+p+"=ALL-UNNAMED") // as Hadoop's own launcher does for Java 17
	}
	if c.options.Protection != "" {
		out = append(out, "-Djava.security.krb5.conf="+c.KerberosConf(),
			"--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED")
	}
	return out
}

// StartDaemon starts a daemon that is not running: namenode, a data node, or one of YARN's.
func (c *Cluster) StartDaemon(name string) error {
	args := c.java(name, "org.apache.hadoop.hdfs.server.namenode.NameNode")
	if name == kdc {
		args = c.kdcJava()
	}
	if class := yarnDaemons[name]; class != "" {
		args = c.yarnJava(name, class)
	}
	for i, p := range c.nodePorts {
		if name == DataNode(i) {
			args = c.java(name, "org.apache.hadoop.hdfs.server.datanode.DataNode",
				"-D", "dfs.datanode.data.dir=file://"+filepath.Join(c.dir, name), "-D",
				fmt.Sprintf("dfs.datanode.address=127.0.0.1:%d", p[0]),
				"-D", fmt.Sprintf("dfs.datanode.http.address=127.0.0.1:%d", p[1]), "-D",
				fmt.Sprintf("dfs.datanode.ipc.address=127.0.0.1:%d", p[2]))
		}
	}
	cmd := exec.Command("sh", append([]string{"-c", keeper, "sh", "java"}, args...)...)
	cmd.Env = c.environment(name)
	return c.start(name, cmd)
}

// start starts a process that ends when its input ends.
func (c *Cluster) start(name string, cmd *exec.Cmd) error {
	log, err := os.OpenFile(filepath.Join(c.dir, "logs", name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the process that stops them all
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.running[name] = &daemon{cmd, input}
	return nil
}

// Kill kills a daemon at once, as kill -9 does.
func (c *Cluster) Kill(name string) {
	d := c.running[name]
	if d == nil {
		return
	}
	delete(c.running, name)
	d.input.Close()
	_ = d.cmd.Wait()
}

// Stop ends all daemons.
func (c *Cluster) Stop() {
	for _, name := range slices.Sorted(maps.Keys(c.running)) {
		c.Kill(name)
	}
}

// Ready waits until the name node has left safe mode and knows all running data nodes.
func (c *Cluster) Ready(ctx context.Context) error {
	nodes := 0
	for i := range c.options.DataNodes {
		if c.running[DataNode(i)] != nil {
			nodes++
		}
	}
	for {
		state, err := c.state(ctx)
		if err == nil && state.Safemode == "" && state.Live == nodes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("HDFS did not come up (%v; logs in %s): %w", err, filepath.Join(c.dir, "logs"), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

type nameNodeState struct {
	Safemode string
	Live     int `json:"NumLiveDataNodes"`
}

// state returns the state at the name node's web port.
func (c *Cluster) state(ctx context.Context) (s nameNodeState, err error) {
	s.Live = -1
	for _, bean := range []string{"NameNodeInfo", "FSNamesystemState"} {
		var doc struct{ Beans []json.RawMessage }
		req, err := http.NewRequestWithContext(ctx, "GET",
			fmt.Sprintf("http://127.0.0.1:%d/jmx?qry=Hadoop:service=NameNode,name=%s", c.webPort, bean), nil)
		if err != nil {
			return s, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return s, err
		}
		err = json.NewDecoder(resp.Body).Decode(&doc)
		resp.Body.Close()
		if err == nil && len(doc.Beans) != 1 {
			err = errors.New("the name node is not up yet")
		}
		if err == nil {
			err = json.Unmarshal(doc.Beans[0], &s)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// Run runs one of Hadoop's own commands on the cluster and returns its output.
func (c *Cluster) Run(ctx context.Context, class string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "java", c.java("command", class, args...)...)
	var errs errorTail
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %v: %w: %s", class, args, err, errs)
	}
	return string(out), err
}

// errorTail keeps the end of a command's error output.
type errorTail []byte

func (t *errorTail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = (*t)[max(0, len(*t)-2000):]
	return len(p), nil
}
