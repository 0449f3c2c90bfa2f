package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"taxon/internal/cluster"
	taxonv1 "taxon/proto/taxon/v1"
)

// startTaxon starts `taxon serve`. end stops it.
func startTaxon(ctx context.Context, s settings) (web, rpc server, end func() error, err error) {
	c := exec.CommandContext(ctx, s.taxon, "serve", "model="+s.model, "--listen", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
		"--threads", "1")
	c.Env, c.Stderr = append(os.Environ(), "GOMAXPROCS=1"), os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return web, rpc, nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, also, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "serving at "), ", gRPC at ")
	if err != nil || !ok {
		return web, rpc, nil, errors.Join(fmt.Errorf("serve said %q", line), err, c.Process.Kill(), c.Wait())
	}
	dialer := &cluster.Dialer{}
	conn, err := dialer.Conn(also)
	if err != nil {
		return web, rpc, nil, errors.Join(err, c.Process.Kill(), c.Wait())
	}
	client := taxonv1.NewModelsClient(conn)
	web = server{pid: c.Process.Pid, prepare: overHTTP(addr, s.top)}
	rpc = server{pid: c.Process.Pid, prepare: func(rows []row) (func(context.Context) error, error) {
		r := &taxonv1.PredictRequest{Model: "model", Top: uint32(s.top)}
		for _, x := range rows {
			in := &taxonv1.Features{Index: x.index}
			for _, v := range x.value {
				in.Value = append(in.Value, float64(v))
			}
			r.Instances = append(r.Instances, &taxonv1.Instance{Input: &taxonv1.Instance_Features{Features: in}})
		}
		return func(ctx context.Context) error {
			out, err := client.Predict(ctx, r)
			if err == nil && (len(out.Predictions) != len(rows) || len(out.Predictions[0].Labels) != s.top) {
				err = fmt.Errorf("%d predictions for %d rows", len(out.Predictions), len(rows))
			}
			return err
		}, nil
	}}
	return web, rpc, func() error { return errors.Join(dialer.Close(), c.Process.Signal(syscall.SIGTERM), c.Wait()) }, nil
}

// overHTTP returns a function that prepares calls over one connection. It does not use an
// http.Client, whose goroutines would be timed too.
func overHTTP(addr string, top int) func([]row) (func(context.Context) error, error) {
	var conn net.Conn
	var in *bufio.Reader
	var out bytes.Buffer
	return func(rows []row) (func(context.Context) error, error) {
		type instance struct {
			Features map[uint32]float32 `json:"features"`
		}
		list := make([]instance, len(rows))
		for i, r := range rows {
			list[i].Features = map[uint32]float32{}
			for k, n := range r.index {
				list[i].Features[n] = r.value[k]
			}
		}
		body, err := json.Marshal(map[string]any{"instances": list, "top": top})
		request := fmt.Appendf(nil, "POST /v1/models/model:predict HTTP/1.1\r\nHost: %s\r\nContent-Type: "+
			"application/json\r\nContent-Length: %d\r\n\r\n%s", addr, len(body), body)
		return func(ctx context.Context) error {
			if conn == nil {
				var dialer net.Dialer
				if conn, err = dialer.DialContext(ctx, "tcp", addr); err != nil {
					return err
				}
				in = bufio.NewReader(conn)
			}
			if _, err := conn.Write(request); err != nil {
				return err
			}
			answer, err := http.ReadResponse(in, nil)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			out.Reset()
			if _, err := io.Copy(&out, answer.Body); err != nil {
				return err
			}
			if n := bytes.Count(out.Bytes(), []byte(`"score"`)); answer.StatusCode != http.StatusOK || n != len(rows)*top {
				return fmt.Errorf("%s, %d labels for %d rows: %.300s", answer.Status, n, len(rows), out.Bytes())
			}
			return nil
		}, err
	}
}

// startPeer starts scikit-learn with the model's weights.
func startPeer(ctx context.Context, s settings, dir string) (srv server, end func() error, err error) {
	npz := filepath.Join(dir, "weights.npz")
	if text, err := exec.CommandContext(ctx, s.taxon, "export", "--model", s.model, "--format", "npz", "--out", npz,
		"--quiet").CombinedOutput(); err != nil {
		return srv, nil, fmt.Errorf("export: %w\n%s", err, text)
	}
	labels, err := filepath.Glob(filepath.Join(dir, "*labels.txt"))
	if err != nil || len(labels) != 1 {
		return srv, nil, fmt.Errorf("labels beside %s: %v, %w", npz, labels, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return srv, nil, err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return srv, nil, err
	}
	_, port, _ := strings.Cut(addr, ":")
	c := exec.CommandContext(ctx, s.python, "test/bench/serve/peer.py", npz, labels[0], port)
	c.Env, c.Stderr = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"), os.Stderr
	if err := c.Start(); err != nil {
		return srv, nil, err
	}
	end = func() error {
		err := c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait() // it ends by the signal
		return err
	}
	for range 300 {
		if r, err := http.Get("http://" + addr + "/readyz"); err == nil {
			return server{pid: c.Process.Pid, prepare: overHTTP(addr, s.top)}, end, r.Body.Close()
		}
		time.Sleep(200 * time.Millisecond)
	}
	return srv, nil, errors.Join(errors.New("the peer does not answer"), end())
}
