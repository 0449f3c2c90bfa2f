package metrics

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"

	"taxon/internal/ui/option"
)

// LogOptions says how a process logs.
type LogOptions struct {
	Format string // text, json; "" is text
	Level  string // debug, info, warn, error; "" is info
}

// AddFlags defines --log-format and --log-level.
func (o *LogOptions) AddFlags(f *pflag.FlagSet) {
	if o.Format == "" {
		o.Format = "text"
	}
	if o.Level == "" {
		o.Level = "info"
	}
	f.StringVar(&o.Format, "log-format", o.Format, "`FORMAT` of log lines: text or json")
	f.StringVar(&o.Level, "log-level", o.Level, "least `LEVEL` that is logged: debug, info, warn or error")
}

// JSON reports whether log lines are JSON. If they are, a process writes nothing else.
func (o LogOptions) JSON() bool { return o.Format == "json" }

// Logger makes a process's log on w, to which several goroutines may write lines at once.
func (o LogOptions) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	switch o.Level {
	case "debug":
		level = slog.LevelDebug
	case "", "info":
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		return nil, fmt.Errorf("‹log-level=%s›: must be debug, info, warn or error", o.Level)
	}
	h := &slog.HandlerOptions{Level: level, ReplaceAttr: shown}
	switch o.Format {
	case "", "text":
		return slog.New(slog.NewTextHandler(w, h)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, h)), nil
	}
	return nil, fmt.Errorf("‹log-format=%s›: must be text or json", o.Format)
}

// secrets are names of attributes whose values are never logged. It is a second line of defence,
// as they should not be passed to the log at all.
var secrets = []string{"token", "authorization", "password", "secret"}

// shown returns an attribute in the form in which it is logged: secrets are removed, and options
// are written as the flags that start processes.
func shown(_ []string, a slog.Attr) slog.Attr {
	if slices.Contains(secrets, strings.ToLower(a.Key)) {
		return slog.String(a.Key, "[redacted]")
	}
	switch v := a.Value.Any().(type) {
	case string:
		return slog.String(a.Key, option.Flags(v))
	case error:
		return slog.String(a.Key, option.Flags(v.Error()))
	}
	return a
}

// warnEvery is the least time between two log lines about the same thing.
const warnEvery = 30 * time.Second

// maxWarned bounds the things that are remembered.
const maxWarned = 100

// Seldom logs what may happen again and again. A line whose key was just logged is not logged again,
// but counted in the next one.
type Seldom struct {
	Log *slog.Logger

	mu   sync.Mutex
	last map[string]*seen
}

// seen holds when a line was last logged, and how often it has been held back since.
type seen struct {
	at    time.Time
	again int
}

// Warn logs a line, unless a line with the same key was logged a moment ago.
func (s *Seldom) Warn(key, what string, attrs ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	before := s.last[key]
	if before != nil && now.Sub(before.at) < warnEvery {
		before.again++
		return
	}
	if before != nil && before.again > 0 {
		attrs = append(attrs, slog.Int("repeated", before.again))
	}
	if s.last == nil || len(s.last) >= maxWarned {
		s.last = map[string]*seen{}
	}
	s.last[key] = &seen{at: now}
	s.Log.Warn(what, attrs...)
}

// Warner returns a function that logs errors that belong to no call, each seldom.
func Warner(log *slog.Logger, what string) func(error) {
	s := &Seldom{Log: log}
	return func(err error) { s.Warn(err.Error(), what, slog.String("error", err.Error())) }
}

// Adopt makes the libraries of a process write into its log: net/http and others through package
// log, and gRPC through AdoptGRPC.
func Adopt(log *slog.Logger) {
	slog.SetLogLoggerLevel(slog.LevelWarn)
	slog.SetDefault(log)
}

// AdoptGRPC brings gRPC's errors into the log of Adopt. It must be called before gRPC is used.
func AdoptGRPC() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, grpcErrors{})) }

// grpcErrors takes lines as gRPC's logger writes them.
type grpcErrors struct{}

func (grpcErrors) Write(line []byte) (int, error) {
	slog.Error("grpc", slog.String("error", strings.TrimSpace(string(line))))
	return len(line), nil
}
