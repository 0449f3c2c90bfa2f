package main

import "github.com/spf13/cobra"

// verbs lists the verbs in the order of the help: one line for each file.
func verbs() []func(*app) *cobra.Command {
	return []func(*app) *cobra.Command{
		newVersionCmd,
	}
}
