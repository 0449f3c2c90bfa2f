package method

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	taxonv1 "taxon/proto/taxon/v1"
)

// Option is the only declaration of an option of a method, or of all jobs. Its flag, its help,
// its key in job files, manifests and on the wire, its checks, the comparison with a training
// that is continued, and the values that tune tries all follow from it.
type Option struct {
	// Name is the name of the flag.
	Name string
	// Key is the name in manifests and, in small letters, in jobs. An empty Key stands for Name with
	// underscores.
	Key  string
	Kind OptionKind

	// Default is the value of an option that is not given. If it is empty, the method decides.
	Default string
	// Choices are the values of a Choice. For a Float or an Int they are words that may be given
	// instead of a number.
	Choices []string
	// Range bounds the value of a Float or an Int.
	Range Range

	// Common options have a flag of their own on the command line. The others, which few users need, are given by
	// their names alone.
	Common bool

	// Group is the group of flags in the help.
	Group string
	// Help is the usage of the flag, with the value's name in backquotes.
	Help string
	// Grid lists the values that tune tries in a grid. If it is empty, tune does not vary the
	// option.
	Grid []string
	// Start is the value at which a search without a grid begins. An empty Start stands for the
	// default.
	Start string
	// Ladder lists values besides the default, in the order in which a search without a grid may
	// try them.
	Ladder []string
	// Offset says how C changes when a search tries another value: C is multiplied by the ratio of
	// the two values to the power of Offset. The search also tries the other value with the same C.
	Offset float64

	Effect Effect
	// On is the structure that a job must have. Without it the option is refused or has no effect.
	On Structure
	// Trees says that the option has no effect on graphs.
	Trees bool
	// OfTrees lists the choices that graphs can't have.
	OfTrees []string
	// Learns says that the option makes the trainer learn a structure. None may then be given.
	Learns bool
	// With is another option and its value, such as "schedule=colour". The option applies only where
	// the other one has that value. It applies everywhere if With is empty.
	With string
	// Report says that the report of a training shows the option.
	Report bool
	// Carried says that the option is not part of the job: the trainer applies it itself, if the
	// method permits it.
	Carried bool
}

// OptionKind is the type of an option's values.
type OptionKind uint8

// These are the kinds of options.
const (
	Float OptionKind = iota
	Int
	Choice
	Bool
)

// String returns the kind in one word.
func (k OptionKind) String() string {
	return [...]string{"float", "int", "choice", "bool"}[min(k, Bool)]
}

// Effect is what another value of an option changes.
type Effect uint8

// These are the effects of options.
const (
	// OnWeights options change the weights. A training that is continued must have the same values.
	OnWeights Effect = iota
	// OnEnd options change when the training ends (see machine.StopCriteria).
	OnEnd
	// OnNothing options change nothing in the result.
	OnNothing
)

// Structure is what a job must be trained on for an option to matter.
type Structure uint8

// These are the structures.
const (
	Anything Structure = iota
	Structured
	Graphs
)

// These are the groups of flags in the help.
const (
	GroupMethod    = "Method"
	GroupStopping  = "Stopping"
	GroupPath      = "Path to the optimum"
	GroupOutput    = "Output"
	GroupResources = "Resources"
)

// Range bounds a number.
type Range struct {
	Least, Most float64
	// Above says that Least itself is not in the range.
	Above bool
	// Why is the reason for the bounds, for messages. It may be empty.
	Why string
}

// These are ranges that several options have.
var (
	AtLeast0   = Range{Most: math.Inf(1)}
	Above0     = Range{Most: math.Inf(1), Above: true}
	Above0To1  = Range{Most: 1, Above: true}
	WholeFrom0 = Range{Most: math.MaxInt32}
)

// Must returns words that say what a number must be if x is outside the range. It returns "" if x
// is in the range.
func (r Range) Must(x float64) string {
	word := func(x float64) string {
		return strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e-").Replace(strconv.FormatFloat(x, 'g', -1, 64))
	}
	must := "must be "
	switch {
	case x <= r.Most && (x > r.Least || x == r.Least && !r.Above):
		return ""
	case x <= 0 && r.Least > 0 && !r.Above:
		return must + "above 0"
	case r.Above && math.IsInf(r.Most, 1):
		must += "above " + word(r.Least)
	case r.Above:
		must += "above " + word(r.Least) + " and at most " + word(r.Most)
	case r.Most == math.MaxInt32 || math.IsInf(r.Most, 1):
		must += word(r.Least) + " or more"
	default:
		must += "from " + word(r.Least) + " to " + word(r.Most)
	}
	if r.Why != "" {
		must += ": " + r.Why
	}
	return must
}

// These are options that several methods have. Solvers hold duals (at most C) and products with the
// bias in float32. The squares of them must stay far from the limits of float32.
var (
	Cost = Option{Name: "C", Common: true, Kind: Float, Default: "1", Range: Range{Least: 1e-30, Most: 1e15,
		Why: "duals are kept in float32"}, Group: GroupMethod,
		Help:   "weight of the losses against the regularisation; larger fits closer",
		Report: true, Grid: []string{"0.001", "0.01", "0.1", "1",
			"10", "100", "1000"},
		Ladder: []string{"1e-5", "3e-5", "1e-4", "3e-4", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "3", "10", "30",
			"100", "300", "1000", "3000", "10000"}}
	Bias = Option{Name: "bias", Common: true, Kind: Float, Default: "1", Range: Range{Most: 1e6}, Group: GroupMethod,
		Help:   "value of the constant bias feature; 0: no bias",
		Report: true, Grid: []string{"1"}, Ladder: []string{"0.3", "3"}}
	PositiveWeight = Option{Name: "positive-weight", Common: true, Kind: Float, Default: "1",
		Choices: []string{"balanced"}, Range: Above0, Group: GroupMethod,
		Help: "weight of the losses of a class's own instances: a `NUMBER`, or balanced (by " +
			"rarity, at most 100)",
		Grid: []string{"1"}, Ladder: []string{"2", "4", "8", "16", "32"}, Offset: -1}
	GapWanted = Option{Name: "gap", Common: true, Kind: Float, Default: "0.01", Range: Above0To1, Group: GroupStopping,
		Effect: OnEnd,
		Help: "stop when the certified relative duality gap (P-D)/P of the whole problem is at " +
			"most this"}
	EvalEvery = Option{Name: "eval-every", Common: true, Kind: Int, Default: "0", Range: WholeFrom0, Group: GroupPath,
		Help: "evaluate on ‹test› every `N` sweeps, into trace.jsonl; 0: only at the end"}
	PriorShift = Option{Name: "prior-shift", Kind: Float, Default: "0", Range: AtLeast0, Group: GroupOutput, Carried: true,
		Grid: []string{"0"}, Ladder: []string{"0.05", "0.1", "0.2", "0.4", "0.8"},
		Help: "add `T` ln(n_max/n) to the scores of a class with n instances, n_max those of the " +
			"largest; tune finds it"}
	WarmStart = Option{Name: "warm-start", Carried: true} // its flag is train's: it names a model
	Families  = Option{Name: "families", Common: true, Kind: Int, Default: "none", Choices: []string{"none", "auto"},
		Range: Range{Least: 1, Most: math.MaxInt32}, Group: GroupMethod, Learns: true,
		Help: "learn a hierarchy: `N` families of classes, auto (about 16 classes in each), or none",
		Grid: []string{"none", "auto"}}
)

// Loss returns the option for the loss of a method, which has one loss or a choice of several.
func Loss(losses ...string) Option {
	return Option{Name: "loss", Common: true, Kind: Choice, Default: losses[0], Choices: losses, Group: GroupMethod,
		Report: true, Help: "loss function (default: the first that the method has)", Grid: losses[:1]}
}

// JobOptions lists the options that every job has, whatever its method.
var JobOptions = []Option{
	{Name: "prune", Kind: Choice, Default: "empty", Choices: []string{"empty", "none"}, Group: GroupMethod,
		Help: "hierarchy leaves without instances: leave them out (empty), or train them on " +
			"negatives alone (none)"},
	{Name: "seed", Common: true, Kind: Int, Default: "0", Range: AtLeast0, Group: GroupMethod, Report: true,
		Help: "random seed `N`: weights differ between seeds, equally within ‹gap› of the optimum"},
	{Name: "max-sweeps", Common: true, Kind: Int, Default: "0", Range: WholeFrom0, Group: GroupStopping, Effect: OnEnd,
		Help: "stop after `N` sweeps; 0: no limit"},
	{Name: "max-time", Common: true, Key: "max_seconds", Kind: Float, Default: "0", Range: AtLeast0,
		Group: GroupStopping, Effect: OnEnd,
		Help: "stop after `S` seconds: running tasks end, and the certificate and the weights are " +
			"still made; 0: no limit"},
	{Name: "checkpoint-every", Key: "checkpoint_sweeps", Kind: Int, Default: "4", Range: Range{Least: 1,
		Most: math.MaxInt32}, Group: GroupResources, Effect: OnNothing,
		Help: "`N` sweeps between checkpoints, at least 10 s apart"},
}

// WireKey returns the option's name in manifests and, in small letters, in jobs.
func (p *Option) WireKey() string {
	if p.Key != "" {
		return p.Key
	}
	return strings.ReplaceAll(p.Name, "-", "_")
}

// Idle reports whether another value than the default would be refused or have no effect, given the
// structure and the values of the other options.
func (p *Option) Idle(on Structure, values map[string]string) bool {
	if p.Learns {
		return on != Anything
	}
	if f := values[Families.Name]; f != "" && f != Families.Default {
		on = max(on, Structured)
	}
	name, want, with := strings.Cut(p.With, "=")
	other, known := values[name]
	return p.On > on || p.Trees && on == Graphs || with && known && other != want
}

// Parse reads a value and returns it in the one form that equal values have. The error says
// what a value must be.
func (p *Option) Parse(s string) (string, error) {
	must := func(what string) (string, error) { return "", errors.New(what) }
	switch p.Kind {
	case Choice:
		if !slices.Contains(p.Choices, s) {
			return must("must be one of " + strings.Join(p.Choices, ", "))
		}
		return s, nil
	case Bool:
		if s != "true" && s != "false" {
			return must("must be true or false")
		}
		return s, nil
	}
	words := ""
	if len(p.Choices) > 0 {
		words = ", or " + strings.Join(p.Choices, ", ")
	}
	if slices.Contains(p.Choices, s) {
		return s, nil
	}
	if p.Kind == Int {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return must("must be a whole number, " + strings.TrimPrefix(p.Range.Must(p.Range.Least-1), "must be ") + words)
		}
		if what := p.Range.Must(float64(n)); what != "" {
			return must(what + words)
		}
		return strconv.FormatUint(n, 10), nil
	}
	x, err := strconv.ParseFloat(s, 64)
	what := "must be a finite number"
	if err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
		what = p.Range.Must(x)
	}
	if what == "" {
		return strconv.FormatFloat(x, 'g', -1, 64), nil
	}
	return must(what + words)
}

// Of returns the option's value in a job. A job that does not name it has the default.
func (p *Option) Of(o *taxonv1.Options) string { return cmp.Or(o.Value(p.WireKey()), p.Default) }

// Number returns the option's value in a job as a number. It is 0 if the value is a word.
func (p *Option) Number(o *taxonv1.Options) float64 {
	x, _ := strconv.ParseFloat(p.Of(o), 64)
	return x
}

// NeedTree returns an error for each option of a job that has a value which only trees allow, all
// of them joined.
func NeedTree(o *taxonv1.Options, options []Option) error {
	var errs []error
	for _, p := range options {
		if text := p.Of(o); slices.Contains(p.OfTrees, text) {
			others := slices.DeleteFunc(slices.Clone(p.Choices), func(c string) bool { return slices.Contains(p.OfTrees, c) })
			errs = append(errs, fmt.Errorf("‹%s=%s› needs a tree: on a graph use %s", p.Name, text,
				strings.Join(others, " or ")))
		}
	}
	return errors.Join(errs...)
}

// Goes reports whether the other option has, in a job, the value that With asks for. It is true if
// With is empty.
func (p *Option) Goes(o *taxonv1.Options) bool {
	name, value, ok := strings.Cut(p.With, "=")
	return !ok || (&Option{Name: name}).Of(o) == value
}

// HasEffect reports whether another value would change anything in a job.
func (p *Option) HasEffect(spec *taxonv1.JobSpec) bool {
	if !p.Goes(spec.GetOptions()) {
		return false
	}
	if p.Trees && spec.GetStructure().GetGraph() {
		return false
	}
	return p.On == Anything || spec.GetStructure() != nil && (p.On == Structured || spec.GetStructure().GetGraph())
}

// JSON returns a value as manifests and reports write it.
func (p *Option) JSON(value string) json.RawMessage {
	if p.Kind == Choice || len(p.Choices) > 0 || value == "" {
		return Encode(value)
	}
	if p.Kind == Float {
		x, _ := strconv.ParseFloat(value, 64) // it has been parsed
		return Encode(x)
	}
	return json.RawMessage(value)
}

// Text returns the text of a value that JSON wrote. If stored is empty, it returns the option's
// default.
func (p *Option) Text(stored json.RawMessage) string {
	text := string(stored)
	if len(stored) > 0 && stored[0] == '"' {
		_ = json.Unmarshal(stored, &text) // as JSON wrote it
	}
	if text == "" {
		return p.Default
	}
	if same, err := p.Parse(text); err == nil {
		return same
	}
	return text
}

// ReadOptions fills the fields of the struct that into points to with the options of a job: those
// given, which are a method's, and JobOptions. A field has the option's name as its tag `option`, and
// is a float64, an unsigned whole number, a bool, or a string.
func ReadOptions(o *taxonv1.Options, options []Option, into any) error {
	v, options := reflect.ValueOf(into).Elem(), slices.Concat(options, JobOptions)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("option")
		at := slices.IndexFunc(options, func(p Option) bool { return p.Name == name })
		if at < 0 {
			return fmt.Errorf("method: %s: there is no option %q", v.Type(), name)
		}
		text := options[at].Of(o)
		var err error
		switch f := v.Field(i); f.Kind() {
		case reflect.Float64:
			var x float64
			x, err = strconv.ParseFloat(text, 64)
			f.SetFloat(x)
		case reflect.Bool:
			f.SetBool(text == "true")
		case reflect.String:
			f.SetString(text)
		default:
			var n uint64
			n, err = strconv.ParseUint(text, 10, 64)
			f.SetUint(n)
		}
		if err != nil {
			return fmt.Errorf("option %s: %w", name, err)
		}
	}
	return nil
}
