package tune

import (
	"context"
	"slices"

	"taxon/coordinator/method/registry"
)

// featuresOption is the option on the kinds of features of texts. It matters more than all others,
// so a hill climb settles it first.
const featuresOption = "features"

const (
	// featuresTime is the share of the whole time in which the kinds of features are compared.
	featuresTime = 0.2
	// featuresSize is the assumed cost of a training with all kinds of features, one after the other,
	// relative to one with words alone. N-grams of characters have some eight times the nonzeros.
	featuresSize = 20
)

// chooseFeatures compares the kinds of features that texts can have, by the quickest method with its
// defaults: on the first fold, or on a sample of it if the time is short. All families start at the
// best kind, and their estimates grow with its size.
func (c *hillClimb) chooseFeatures(ctx context.Context) error {
	f := c.families[0]
	o := c.o.Grid.find(f.start.Method, featuresOption)
	if o == nil {
		return nil
	}
	kinds := c.o.Grid.listValues(o)
	if len(kinds) > 1 {
		total, threads := c.o.Time, float64(c.slots)
		if total == 0 {
			total, threads = DefaultTime, 2
		}
		c.stage = &stage{from: 0, to: 1}
		if part := featuresTime * total.Seconds() * threads / (featuresSize * f.estimate); part < 1 {
			number := c.folds.draw(part, true, nil, registry.Seed(c.o.Train.Job))
			c.stage = &stage{from: number, to: number + 1}
			if err := c.sized(); err != nil {
				return err
			}
		}
		c.share = featuresTime
		var err error
		for _, kind := range kinds {
			if err = c.try(ctx, f, f.start.with(featuresOption, kind)); err != nil {
				break
			}
		}
		if f.best == nil {
			return err // nil if no training succeeded: the search says why
		}
		c.settleFeatures(f.best)
		f.best = nil
		if err != nil {
			c.trials = c.stage.trials
			return err
		}
	}
	for _, g := range c.families {
		g.estimate *= c.size(g.start)
	}
	return nil
}

// settleFeatures lets all families start at the features of the best trial, and keeps what the
// others would have given.
func (c *hillClimb) settleFeatures(best *trial) {
	for _, r := range c.stage.trials {
		if r != best {
			d := difference(r.first, best.first)
			c.compared = append(c.compared, Effect{featuresOption, r.base.Values[featuresOption], d[0], d.error()})
		}
	}
	kind := best.base.Values[featuresOption]
	for _, g := range c.families {
		g.start = g.start.with(featuresOption, kind)
	}
	c.settled = true
}

// ofWords are the options that mean nothing unless words or their stems are features.
var ofWords = []string{"ngrams", "stop-words"}

// idleText reports whether a text option has no effect beside the point's features, or is settled.
func (c *hillClimb) idleText(option string, p Point) bool {
	kind := p.Values[featuresOption]
	return option == featuresOption && c.settled || kind == "chars" && slices.Contains(ofWords, option)
}
