// Command up runs an HDFS on this machine, optionally with YARN, until it is interrupted. It serves
// to try taxon, and prints the environment variables to set:
//
//	go run ./test/hadoop/up -datanodes 2 -replication 2
//	go run ./test/hadoop/up -services
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"taxon/test/hadoop"
)

func main() {
	nodes := flag.Int("datanodes", 1, "data nodes")
	replicas := flag.Int("replication", 1, "replicas of a block")
	var yarn hadoop.YARNOptions
	flag.BoolVar(&yarn.YARN, "yarn", false, "YARN too")
	flag.BoolVar(&yarn.Services, "services", false, "YARN with its REST service API")
	flag.IntVar(&yarn.NodeMB, "memory", 16384, "MiB that YARN may give to containers, whatever this machine has")
	flag.BoolVar(&yarn.History, "history", false, "YARN with MapReduce's history server")
	dir := flag.String("dir", "", "empty folder for its data (default: a temporary one, removed at the end)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, hadoop.Options{DataNodes: *nodes, Replication: *replicas, YARNOptions: yarn}); err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, o hadoop.Options) error {
	if dir == "" {
		temp, err := os.MkdirTemp("", "taxon-hadoop-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		dir = temp
	}
	lib, err := hadoop.Install(ctx)
	if err != nil {
		return err
	}
	up, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	c, err := hadoop.Start(up, lib, dir, o)
	if err != nil {
		return err
	}
	defer c.Stop()
	fmt.Printf("# %s\nexport HADOOP_CONF_DIR=%s\n", c.URL("/"), c.Conf())
	if o.YARN || o.Services || o.History {
		if err := commands(c); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// commands writes the replacements for Hadoop's commands mapred and yarn, and prints their paths.
func commands(c *hadoop.Cluster) error {
	if _, err := c.Mapred(); err != nil {
		return err
	}
	if err := c.WriteCommand(filepath.Join(c.Bin(), "yarn")); err != nil {
		return err
	}
	fmt.Printf("export PATH=%s:$PATH\n# resource manager: %s\n", c.Bin(), c.ResourceManagerURL())
	return nil
}
