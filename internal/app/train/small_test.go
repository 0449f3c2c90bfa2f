package train

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/ui/progress"
)

// wide is a training on rows of six classes, each with a word of its own among many that tell nothing.
func wide(t *testing.T, noise int) *Options {
	t.Helper()
	o := noisy(t, "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n")
	r := rand.New(rand.NewPCG(3, 9))
	var rows strings.Builder
	for range 300 {
		c := r.IntN(6)
		fmt.Fprintf(&rows, "c%d %d:1", c, 1+c)
		for at := 10 + r.IntN(100); at < 3000; at += 1 + r.IntN(100) {
			fmt.Fprintf(&rows, " %d:%.3f", at, r.Float64()*float64(noise)/100)
		}
		rows.WriteString("\n")
	}
	if err := os.WriteFile(o.Data[0], []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestModelSize: a model is as small as was asked for where that costs little, says what it cost, and is found
// finished; where it costs more it stays larger, and the user is told.
func TestModelSize(t *testing.T) {
	o, h := wide(t, 5), &heard{}
	whole, err := Run(t.Context(), o, h)
	if err != nil || whole.Pruned != nil {
		t.Fatal(err)
	}
	bytes := fs.FolderBytes(o.Out)
	o.Out, o.ModelSize = o.Out+"-small", bytes/3
	small, err := Run(t.Context(), o, h)
	if err != nil {
		t.Fatal(err)
	}
	c := small.Pruned
	if got := fs.FolderBytes(o.Out); c == nil || got > o.ModelSize || c.Instances < MinHeld || !c.HeldOut ||
		c.Asked != o.ModelSize || c.MicroF1-c.Pruned+c.StandardError > 0.001 || small.WeightsSHA256 != whole.WeightsSHA256 {
		t.Errorf("%d bytes of %d, %+v", got, o.ModelSize, c)
	}
	m, err := model.Open(o.Out)
	if err != nil || m.Manifest.Pruned == nil {
		t.Fatal(err)
	}
	m.Close()
	if again, err := Run(t.Context(), o, h); err != nil || *again.Pruned != *c {
		t.Errorf("run again: %v", err)
	}
	o.ModelSize++
	if _, err := Run(t.Context(), o, h); err == nil || !strings.Contains(err.Error(), "‹model-size") {
		t.Errorf("another size: %v", err)
	}
	o.ModelSize, o.Out = 2*bytes, o.Out+"-fits"
	if r, err := Run(t.Context(), o, h); err != nil || r.Pruned != nil {
		t.Errorf("it fits as it is: %v", err)
	}
	if r, err := Run(t.Context(), o, h); err != nil || r.Pruned != nil {
		t.Errorf("it fits as it is, again: %v", err)
	}
	o = wide(t, 100)
	o.ModelSize = 12 << 10
	r, err := Run(t.Context(), o, h)
	if err != nil {
		t.Fatal(err)
	}
	if c = r.Pruned; c == nil || c.MicroF1-c.Pruned+c.StandardError > 0.001 || fs.FolderBytes(o.Out) <= o.ModelSize ||
		!strings.Contains(strings.Join(h.warnings, "\n"), "‹model-size=12KiB› would cost") {
		t.Errorf("%+v, %d bytes, told %q", c, fs.FolderBytes(o.Out), h.warnings)
	}
	o.Threshold = 0.1
	if _, err := Run(t.Context(), o, h); err == nil || !strings.Contains(err.Error(), "leave out ‹threshold›") {
		t.Errorf("both: %v", err)
	}
}

// until ends a training when it begins a piece of work of some words.
type until struct {
	heard
	words string
	end   func()
}

func (u *until) Start(what string, total int64) progress.Progress {
	if strings.Contains(what, u.words) {
		u.end()
	}
	return u.heard.Start(what, total)
}

// TestModelSizeInterrupted: a stop while instances are held out ends the training, and the same one goes on.
func TestModelSizeInterrupted(t *testing.T) {
	o := wide(t, 5)
	o.ModelSize = 30 << 10
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Run(ctx, o, &until{words: "without the held-out", end: cancel}); err == nil ||
		!strings.Contains(err.Error(), "the training is done and kept") {
		t.Fatalf("interrupted: %v", err)
	}
	if r, err := Run(t.Context(), o, progress.Discard{}); err != nil || r.Pruned == nil {
		t.Errorf("again: %v", err)
	}
}

// TestLossError: the error of a difference of two micro-F1s is by the same rows: none where no label differs, and
// that of the discordant rows where one label is given to each row.
func TestLossError(t *testing.T) {
	base, now := make([]hits, 1000), make([]hits, 1000)
	for i := range base {
		base[i] = hits{right: float64(min(i%10, 1)), all: 2}
		now[i] = base[i]
	}
	if e := lossError(base, now); e != 0 {
		t.Errorf("the same labels: %g", e)
	}
	for i := 0; i < 1000; i += 100 { // ten gained, ten lost
		now[i].right, now[i+1].right = 1, 0
	}
	if e, want := lossError(base, now), math.Sqrt(20)/1000; math.Abs(e-want) > 1e-12 || microF1(now) != 0.9 {
		t.Errorf("%g, want %g; micro F1 %g", e, want, microF1(now))
	}
}

// TestLearnedWithoutTheHeldOut: the hierarchy of a training on some of the rows is learned from these alone:
// other labels of the rows held out change nothing in it.
func TestLearnedWithoutTheHeldOut(t *testing.T) {
	o := wide(t, 100)
	o.Hierarchy = Learned
	o.Said = registry.Values{"families": "3"}
	rest := make([]uint32, 200)
	for i := range rest {
		rest[i] = uint32(i)
	}
	trees := func() (whole, part string) {
		on, err := Open(t.Context(), o, &heard{}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer on.Close()
		some, err := on.On(&heard{}, o.Job, on.Set.Subset(rest), false)
		if err != nil {
			t.Fatal(err)
		}
		return string(on.Structure.Text()), string(some.Structure.Text())
	}
	if err := o.Validate("train"); err != nil {
		t.Fatal(err)
	}
	whole, part := trees()
	data, err := os.ReadFile(o.Data[0])
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.SplitAfter(string(data), "\n")
	for i := len(rest); i < 300; i++ {
		if class := rows[i][1] - '0'; i%6 > 0 { // every class keeps a row
			rows[i] = fmt.Sprintf("c%d%s", (int(class)*5+i)%6, rows[i][2:])
		}
	}
	if err := os.WriteFile(o.Data[0], []byte(strings.Join(rows, "")), 0o666); err != nil {
		t.Fatal(err)
	}
	other, same := trees()
	if same != part {
		t.Errorf("the tree of the rows trained on:\n%safter other labels of the rest:\n%s", part, same)
	}
	if other == whole || part == "" {
		t.Errorf("the labels of the rest change nothing in the tree of all rows either:\n%s", whole)
	}
}
