package badger

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if from, dir, ok := strings.Cut(os.Getenv(killDir), " "); ok {
		fmt.Fprintln(os.Stderr, writeForever(dir, from))
		os.Exit(1)
	}
	if os.Getenv(flipChild) != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}
