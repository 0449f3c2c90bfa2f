// Command taxon trains, applies and evaluates linear classifiers over large class hierarchies. Each
// file holds one verb. The parts that all verbs share are in main.go, root.go (the frame and the
// list of verbs), errors.go and exit.go (exit statuses) and help.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"taxon/internal/cluster/jobs"
	"taxon/internal/cluster/metrics"
	"taxon/internal/fs"
	_ "taxon/internal/methods/all" // register themselves
	"taxon/internal/ui/console"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

func main() {
	metrics.AdoptGRPC()
	kill := func() { os.Exit(exitInterrupted) }
	ctx, in := context.Background(), io.Reader(os.Stdin)
	if os.Getenv(envEndsWithStdin) != "" {
		os.Unsetenv(envEndsWithStdin) // it is not for the processes that this one starts
		ctx, in = endsWith(ctx, os.Stdin, kill), strings.NewReader("")
	}
	ctx, stop := withSignals(ctx, kill)
	code := execute(ctx, os.Args[1:], in, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// envEndsWithStdin is the environment variable with which a program that starts taxon makes it end
// together with that program. The program holds the other end of the pipe that is taxon's standard
// input. The Python package sets it.
const envEndsWithStdin = "TAXON_ENDS_WITH_STDIN"

// envMarkOptions is the environment variable with which a program that starts taxon receives
// errors, warnings and notes with options in the form ‹cutoff=0.5›, to render them for its own
// user. The Python package sets it.
const envMarkOptions = "TAXON_MARK_OPTIONS"

// orphanWait is how long a process may take to end after the program that started it has ended. The
// limit is needed because nobody is left to send a second signal.
const orphanWait = 30 * time.Second

// endsWith returns a context that is cancelled, with cause errInterrupted, when r ends. It calls
// kill if the process still runs after orphanWait.
func endsWith(parent context.Context, r io.Reader, kill func()) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		_, _ = io.Copy(io.Discard, r) // an error counts as the end, too
		cancel(jobs.ErrInterrupted)
		time.AfterFunc(orphanWait, kill)
	}()
	return ctx
}

// signalsApart is the time within which two signals count as one. A shell or `timeout` signals the
// process and then its group. No user presses Ctrl-C twice that fast.
const signalsApart = 50 * time.Millisecond

// withSignals returns a context that is cancelled with cause errInterrupted at the first SIGINT or
// SIGTERM, so that a verb can end cleanly. At the second signal it calls kill. stop restores the
// signals and waits for the goroutine.
func withSignals(parent context.Context, kill func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var first time.Time
		for {
			select {
			case <-signals:
				switch {
				case first.IsZero():
					first = time.Now()
					cancel(jobs.ErrInterrupted)
				case time.Since(first) >= signalsApart:
					kill()
				}
			case <-quit:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(quit)
		<-done
		cancel(nil)
	}
}

// execute runs one command line and returns its exit status. Every failure, including a panic of
// the calling goroutine, is one line on stderr.
func execute(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	return executeVerbs(ctx, verbs(), args, in, out, errw)
}

// executeVerbs is execute for a list of verbs.
func executeVerbs(ctx context.Context, verbs []named, args []string, in io.Reader, out, errw io.Writer) (code int) {
	stdout := &stickyWriter{w: out}
	a := &app{stdin: fs.NewCancelReader(ctx, in), stdout: stdout, stderr: errw, ui: console.New(errw),
		style: console.NewStyle(out), args: args, terminal: onTerminal(in, errw)}
	if os.Getenv(envMarkOptions) != "" {
		os.Unsetenv(envMarkOptions) // it is not meant for the processes that this one starts
		a.marked, a.ui.Options = true, option.Commands
	}
	defer func() {
		if r := recover(); fs.IsFault(r) {
			a.ui.Close()
			a.fail(format.OneLine(fs.Fault(r).Error()))
			code = exitFailed
		} else if r != nil {
			a.ui.Close()
			a.fail(fmt.Sprintf("internal error: %s%s; please report", format.OneLine(fmt.Sprint(r)), panicPlace()))
			code = exitFailed
		}
	}()
	debug.SetPanicOnFault(true)
	err := runRoot(ctx, a, verbs, args)
	a.ui.Close()
	if stdout.err != nil && (err == nil || errors.Is(err, stdout.err)) {
		err = exitf(exitFailed, "%w", fs.Explain("standard output", pathCause(stdout.err)))
	}
	if err == nil {
		return exitDone
	}
	code, line := describe(ctx, err)
	if line != "" {
		a.fail(line)
	}
	return code
}

// fail shows the error of the verb, as lines of text, or in the log of a process that writes JSON.
func (a *app) fail(lines string) {
	lines = a.ui.Options(lines)
	if a.log != nil {
		a.log.Error("failed", "error", strings.ReplaceAll(lines, "\n", "; "))
		return
	}
	fmt.Fprintf(a.stderr, "taxon: %s\n", strings.ReplaceAll(lines, "\n", "\ntaxon: "))
}

// stickyWriter remembers the first failed write. A full disk is then an error even if a verb
// ignores the result of Fprintf.
type stickyWriter struct {
	w   io.Writer
	err error
}

func (s *stickyWriter) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

// panicPlace returns the file and the line that panicked, as in " (solve.go:88)". One line has no
// room for more of the stack. It must be called by the function that recovers.
func panicPlace() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	seen := false
	for {
		f, more := frames.Next()
		if seen && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf(" (%s:%d)", filepath.Base(f.File), f.Line)
		}
		seen = seen || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}

// verb builds the command of one verb of the app.
type verb = func(*app) *cobra.Command

// named is a verb with the name of its command.
type named struct {
	name  string
	build verb
}

// verbs lists the verbs in the order in which the help shows them. There is one line per file.
func verbs() []named {
	return []named{
		{"demo", newDemoVerb},
		{"train", newTrainVerb},
		{"tune", newTuneCmd},
		{"predict", newPredictCmd},
		{"vectors", newVectorsCmd},
		{"terms", newTermsCmd},
		{"eval", newEvalCmd},
		{"export", newExportCmd},
		{"explain", newExplainCmd},
		{"methods", newMethodsCmd},
		{"serve", newServeCmd},
		{"report", newReportCmd},
		{"runs", newRunsCmd},
		{"ingest", newIngestCmd},
		{"info", newInfoCmd},
		{"check", newCheckCmd},
		{"generate", newGenerateCmd},
		{"tree", newTreeCmd},
		{"certs", newCertsCmd},
		{"submit", newSubmitCmd},
		{"jobs", newJobsCmd},
		{"status", newStatusCmd},
		{"logs", newLogsCmd},
		{"cancel", newCancelCmd},
		{"rm", newRmCmd},
		{"resume", newResumeCmd},
		{"restore", newRestoreCmd},
		{"workers", newWorkersCmd},
		{"drain", newDrainCmd},
		{"stores", newStoresCmd},
		{"cluster", newClusterCmd},
		{"yarn", newYarnCmd},
		{"coordinator", newCoordinatorCmd},
		{"store", newStoreCmd},
		{"worker", newWorkerCmd},
		{"mapreduce-task", newMapReduceTaskCmd},
		{"version", newVersionCmd},
	}
}
