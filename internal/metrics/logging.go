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
		return nil, fmt.Errorf("--log-level %s: must be debug, info, warn or error", o.Level)
	}
	h := &slog.HandlerOptions{Level: level, ReplaceAttr: redact}
	switch o.Format {
	case "", "text":
		return slog.New(slog.NewTextHandler(w, h)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, h)), nil
	}
	return nil, fmt.Errorf("--log-format %s: must be text or json", o.Format)
}

// secrets are names of attributes whose values are never logged. It is a second line of defence,
// as they should not be passed to the log at all.
var secrets = []string{"token", "authorization", "password", "secret"}

func redact(_ []string, a slog.Attr) slog.Attr {
	if slices.Contains(secrets, strings.ToLower(a.Key)) {
		return slog.String(a.Key, "[redacted]")
	}
	return a
}

// warnEvery is the least time between two log lines about the same error.
const warnEvery = 30 * time.Second

// maxWarned bounds the errors that are remembered.
const maxWarned = 100

// Warner returns a function that logs errors that belong to no call. An error that was just
// logged is not logged again, but counted in the next line.
func Warner(log *slog.Logger, what string) func(error) {
	type seen struct {
		at    time.Time
		again int
	}
	var mu sync.Mutex
	last := map[string]*seen{}
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		s := last[err.Error()]
		if s != nil && now.Sub(s.at) < warnEvery {
			s.again++
			return
		}
		attrs := []any{slog.String("error", err.Error())}
		if s != nil && s.again > 0 {
			attrs = append(attrs, slog.Int("repeated", s.again))
		}
		if len(last) >= maxWarned {
			clear(last)
		}
		last[err.Error()] = &seen{at: now}
		log.Warn(what, attrs...)
	}
}
