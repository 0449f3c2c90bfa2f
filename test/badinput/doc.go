// Package badinput has a table of invalid inputs and command lines, which it runs against the real
// binary. Each test checks that the program ends with the documented status (2 if the input or
// command line is wrong, 1 for a failure of the disk), that it gives the reason in one line on
// stderr and prints nothing on stdout, that the line names the right file and line, and that the
// folder holds the same bytes as before, without incomplete files.
package badinput
