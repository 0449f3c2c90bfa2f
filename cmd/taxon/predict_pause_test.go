package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taxon/internal/data/dataset"
	"taxon/internal/model/predict"
)

// A line's labels come out before the next line goes in: who waits for them sees them, even if
// what follows it is no instance.
func TestPredictAnswersWhenTheInputPauses(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a predict that waits for more
	defer cancel()
	in, feed := io.Pipe()
	out, answers := io.Pipe()
	stop := context.AfterFunc(ctx, func() { answers.CloseWithError(ctx.Err()) })
	defer stop()
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		code := execute(ctx, []string{"predict", "--model", animals(t, 10), "--data", "-"}, in, answers, &stderr)
		answers.Close()
		ended <- code
	}()
	lines := bufio.NewReader(out)
	for _, rows := range []string{"7:1\n", "2:2\n# none\n\n", "100:200\n7:2\n"} {
		go io.WriteString(feed, rows)
		for range strings.Count(rows, ":") {
			if got, err := lines.ReadString('\n'); err != nil || len(got) < 2 {
				t.Fatalf("after %q: %q, %v", rows, got, err)
			}
		}
	}
	feed.Close()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
}

// The same for the rows of tables, whole ones and halves, with lines between them that are no rows.
func TestPredictAnswersTablesWhenTheInputPauses(t *testing.T) {
	dir := t.TempDir()
	train := filepath.Join(dir, "a.csv")
	if err := os.WriteFile(train, []byte("id,t,l\n1,red apple,A\n2,green pear,B\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "m")
	var stderr bytes.Buffer
	if code := execute(t.Context(), []string{"train", "--data", train, "--text-column", "t", "--label-column", "l",
		"--x", "min-df=1", "--out", model}, nil, io.Discard, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	for format, pieces := range map[string][]string{
		"csv": {"id,t\na,red apple\n", "b,green\n\nc,\"red\npear\"\nd,gr", "een\n", "e,red"},
		"tsv": {"id\tt\na\tred apple\n", "b\tgreen\n\nc\tpear\nd\tgr", "een\n", "e\tred"},
		"jsonl": {`{"t":"red apple"}` + "\n", `{"t":"green"}` + "\n \n" + `{"t":"pear"}` + "\n" + `{"t":"gr`, `een"}` + "\n",
			`{"t":"red"}`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a predict that waits for more
		in, feed := io.Pipe()
		out, answers := io.Pipe()
		stop := context.AfterFunc(ctx, func() { answers.CloseWithError(ctx.Err()) })
		ended := make(chan int, 1)
		go func() {
			code := execute(ctx, []string{"predict", "--model", model, "--data", "-", "--x", "data-format=" + format,
				"--text-column",
				"t", "--format", "csv", "--top", "1"}, in, answers, &stderr)
			answers.Close()
			ended <- code
		}()
		lines := bufio.NewReader(out)
		want := func(n int) {
			t.Helper()
			for range n {
				if got, err := lines.ReadString('\n'); err != nil {
					t.Fatalf("%s: %q, %v", format, got, err)
				}
			}
		}
		for i, n := range []int{2, 2, 1} { // the head and a row, two rows, the row that came by halves
			go io.WriteString(feed, pieces[i])
			want(n)
		}
		_, _ = io.WriteString(feed, pieces[3])
		feed.Close()
		want(1)
		if code := <-ended; code != 0 {
			t.Errorf("%s: exit %d: %s", format, code, stderr.String())
		}
		stop()
		cancel()
	}
}

// trickle gives a text in pieces, with pauses longer than a row waits for others.
type trickle struct {
	pieces []string
	pause  time.Duration
}

func (r *trickle) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	time.Sleep(r.pause)
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
	}
	return n, nil
}

// How the input comes changes no byte of the output.
func TestPausesChangeNoLabels(t *testing.T) {
	args := []string{"predict", "--model", animals(t, 10), "--data", "-", "--scores"}
	var want, got, stderr bytes.Buffer
	if code := execute(t.Context(), args, strings.NewReader(animalRows), &want, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	r := &trickle{pieces: []string{animalRows[:3], animalRows[3:12], animalRows[12:31], animalRows[31:]},
		pause: predict.LongestWait + predict.LongestWait/2}
	if code := execute(t.Context(), args, r, &got, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	if got.String() != want.String() || got.Len() == 0 {
		t.Errorf("in pieces %q, at once %q", got.String(), want.String())
	}
}

// Lines that are at hand fill one batch; the reader asks to pause only where it has to wait.
func TestFastInputIsOneBatch(t *testing.T) {
	asked := 0
	r := dataset.NewReader(strings.NewReader(strings.Repeat("a 1:1\n", 1000)),
		dataset.ReaderOptions{Pause: func() bool { asked++; return asked%2 == 0 }})
	rows, pauses := 0, 0
	for {
		_, err := r.Read()
		if err == io.EOF {
			break
		}
		if err == dataset.ErrPause {
			pauses++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		rows++
	}
	if rows != 1000 || pauses != 1 {
		t.Errorf("%d rows, %d pauses", rows, pauses)
	}
}
