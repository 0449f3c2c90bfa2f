// Package badinput holds a table of broken inputs and command lines, run against the
// real binary. Of each it is checked that the program ends with the status the contract
// names (2: the input or command line is wrong; 1: the disk), that it says why in one
// line on stderr and nothing on stdout, that the line names the right file and line, and
// that the folder it ran in holds the same bytes as before: nothing half-written stays.
package badinput
