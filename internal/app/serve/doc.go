// Package serve answers for models over HTTP and gRPC: predictions and explanations of a few instances
// at a time.
//
//	POST /v1/models/NAME:predict   {"instances": [{"text": ...} or {"features": {"7": 0.5}}], "top": 5}
//	POST /v1/models/NAME:explain   the same, and "label"
//	GET  /v1/models, /healthz, /readyz, /openapi.json, /metrics
//	taxon.v1.Models                the same calls over gRPC, on an address of its own
//
// Models are held by columns (model.PredictOptions.RowByRow), so that one row costs its own features
// and one pass over the tree. A model whose folder gets another manifest is opened beside the one in
// use and takes its place whole; requests under way end with the one that they began with. What can't
// be opened changes nothing and is logged.
//
// What is beyond the limits is refused at once: a body that is too large by 413 (RESOURCE_EXHAUSTED),
// work beyond the queue or the rate by 429 with Retry-After (RetryInfo). A broken instance is an error
// in its place; the others of its request are answered.
package serve
