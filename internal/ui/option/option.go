// Package option lets code name the options of a user without knowing how that user writes them. A
// text names an option as ‹cutoff›, and with a value as ‹cutoff=0.5›. The package that shows the
// text renders it: the command line as --cutoff 0.5, HTTP and the Python package as cutoff=0.5.
package option

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// named matches an option within a text: its name and, if it has one, its value after an equals
// sign.
var named = regexp.MustCompile(`‹([A-Za-z][A-Za-z0-9-]*)(=[^‹›]*)?›`)

// Value returns an option with a value, for use within a text.
func Value(name string, value any) string { return fmt.Sprintf("‹%s=%v›", name, value) }

// HasNoFlag says which options the command line takes as --x name=value, because they have no flag of their
// own. The command line sets it when the program starts. If it is nil, all options have flags.
var HasNoFlag func(name string) bool

// Flags writes the options within a text as the command line takes them.
func Flags(text string) string {
	if !strings.Contains(text, "‹") {
		return text
	}
	return named.ReplaceAllStringFunc(text, func(s string) string {
		name, value := parse(s)
		switch {
		case HasNoFlag != nil && HasNoFlag(name):
			return "--x " + name + value
		case value == "":
			return "--" + name
		}
		return "--" + name + " " + value[1:]
	})
}

// Commands writes the options within the command lines of a text as the command line takes them, and leaves the
// others marked.
func Commands(text string) string { return command.ReplaceAllStringFunc(text, Flags) }

// Replace writes the options for which write returns true, and leaves the others.
func Replace(text string, write func(name, value string) (string, bool)) string {
	return named.ReplaceAllStringFunc(text, func(s string) string {
		name, value := parse(s)
		if text, ok := write(name, strings.TrimPrefix(value, "=")); ok {
			return text
		}
		return s
	})
}

// command is a command line within a text, which is written with flags everywhere.
var command = regexp.MustCompile("`taxon [^`]*`")

// Names writes the options within a text by their names, for a user who fills in fields.
func Names(text string) string {
	text = Commands(text)
	return named.ReplaceAllStringFunc(text, func(s string) string {
		name, value := parse(s)
		return name + value
	})
}

// parse returns the name and the value, with its equals sign, of a match of named.
func parse(match string) (name, value string) {
	parts := named.FindStringSubmatch(match)
	return parts[1], parts[2]
}

// Error is a mistake in options, or in the input that they name. Only the user can correct it: the
// same call fails again.
type Error struct {
	// Lines are the messages that Join combined. It is nil for an error made by Errorf.
	Lines []string

	msg string
	err error
}

func (e *Error) Error() string { return e.msg }

// Unwrap returns the cause, which may be nil.
func (e *Error) Unwrap() error { return e.err }

// Errorf returns an Error. A %w in the format becomes its cause.
func Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{msg: err.Error(), err: errors.Unwrap(err)}
}

// Join combines errors into one Error. It returns nil if all of them are nil.
func Join(errs ...error) error {
	var lines []string
	for _, err := range errs {
		if e := (*Error)(nil); errors.As(err, &e) && e.Lines != nil {
			lines = append(lines, e.Lines...)
		} else if err != nil {
			lines = append(lines, err.Error())
		}
	}
	if lines == nil {
		return nil
	}
	return &Error{Lines: lines, msg: strings.Join(lines, "; "), err: errors.Join(errs...)}
}

// Is reports whether err is or wraps an Error.
func Is(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
