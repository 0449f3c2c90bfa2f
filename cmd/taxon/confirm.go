package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"taxon/internal/cluster/client"
	"taxon/internal/exit"
)

// onTerminal says whether somebody at a terminal can be asked: both ends are one.
func onTerminal(in io.Reader, out io.Writer) bool {
	from, ok := in.(*os.File)
	to, too := out.(*os.File)
	return ok && too && term.IsTerminal(int(from.Fd())) && term.IsTerminal(int(to.Fd()))
}

// confirm asks before something that can't be undone: why says what is at stake. Without a
// terminal it needs --yes. The error is of a command that is not to go on.
func (a *app) confirm(yes bool, why, question string) error {
	if yes {
		return nil
	}
	if !a.terminal {
		return exit.Usagef("%s: give --yes if that is meant", why)
	}
	fmt.Fprintf(a.stderr, "%s. %s [y/N] ", why, question)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && answer == "" {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return exit.Usagef("%s: nothing was done", why)
	}
	return nil
}

// confirmer asks before what can't be undone, unless it was said to be meant.
func (a *app) confirmer(yes bool) client.Confirm {
	return func(why, question string) error { return a.confirm(yes, why, question) }
}
