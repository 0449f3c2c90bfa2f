package main

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/app/serve"
	"taxon/internal/cluster/metrics"
)

func newServeCmd(a *app) *cobra.Command {
	var o serve.Options
	var log metrics.LogOptions
	cmd := &cobra.Command{
		Use:     "serve MODEL [NAME=MODEL ...]",
		GroupID: groupModel,
		Short:   "serve models over HTTP and gRPC",
		Long: "Serves predictions and explanations as JSON: POST /v1/models/NAME:predict with {\"instances\": [{\"text\": " +
			"\"...\"} or {\"features\": {\"7\": 0.5}}], \"top\": 5}, /openapi.json has the rest. With --grpc the service " +
			"taxon.v1.Models answers the same. " +
			"A MODEL without NAME= is called by its folder's base name. When a folder gets another model, that one is opened " +
			"beside the old one and takes its place whole; what can't be opened changes nothing. " +
			"Work beyond the limits is refused with 429 and Retry-After, and a broken instance is an error in its place. On " +
			"loopback nothing else is needed; beyond it, TLS and identities are (see `taxon help certs`). On SIGTERM " +
			"requests under way end first.",
		Example: "taxon serve model --listen 127.0.0.1:8080\n" +
			"taxon serve small=model-a large=model-b --listen 127.0.0.1:8080 --grpc 127.0.0.1:8081 --queue 200",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := log.Logger(a.stderr)
			if err != nil {
				return err
			}
			o.Models, o.Version = args, readVersion().Version
			o.Log, o.Security.Warn = metrics.Warner(to, "models"), metrics.Warner(to, "security")
			a.logsBy(log)
			o.Ready = func(addr, grpc string) {
				if log.JSON() {
					to.Info("ready", "addr", addr, "grpc", grpc)
					return
				}
				if grpc != "" {
					addr += ", gRPC at " + grpc
				}
				fmt.Fprintf(a.stdout, "serving at %s\n", addr)
			}
			return serve.Run(cmd.Context(), o)
		},
	}
	flagGroup(cmd, "Process", func(f *pflag.FlagSet) {
		f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "`ADDR` (host:port) to listen on; beyond loopback it "+
			"needs TLS; port 0: any")
		f.StringVar(&o.GRPC, "grpc", "", "answer the same calls over gRPC at `ADDR` "+
			"(proto/taxon/v1/models.proto) (default none)")
		threadsFlag(f, &o.Threads)
		f.DurationVar(&o.Reload, "reload", time.Second, "look every `TIME` whether a folder holds another model")
		f.DurationVar(&o.Drain, "drain", 30*time.Second, "in the end requests under way may take `TIME`")
	})
	flagGroup(cmd, "Limits", func(f *pflag.FlagSet) {
		bytesFlag(f, &o.MaxBytes, "max-body", 8<<20, "`SIZE` of a request, and of an answer over gRPC")
		bytesFlag(f, &o.Memory, "memory", serve.DefaultMemory, "`SIZE` that the bodies and answers of requests under way "+
			"may take; requests beyond it are refused")
		intFlag(f, &o.MaxRows, "max-rows", 4096, 1, math.MaxInt32, "`N` instances of a request")
		intFlag(f, &o.Queue, "queue", 100, 0, math.MaxInt32, "`N` requests that may wait for a free core; more are refused")
		floatFlag(f, &o.Rate, "rate", 0, "`N` requests a second; more are refused; 0: no bound", atLeast0)
	})
	flagGroup(cmd, "Security", o.Security.AddFlags)
	flagGroup(cmd, "Watching", log.AddFlags)
	return cmd
}
