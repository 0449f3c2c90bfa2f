// Package formats checks exports with the programs for which they are written: SciPy, scikit-learn,
// safetensors, pyarrow and LIBLINEAR. `make test-formats` builds the Python environment and runs
// the tests; without the environment, the tests that need it are skipped.
package formats
