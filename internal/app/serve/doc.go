// Package serve predicts and explains a few instances at a time with models, over HTTP and gRPC.
//
//	POST /v1/models/NAME:predict   {"instances": [{"text": ...} or {"features": {"7": 0.5}}], "top": 5}
//	POST /v1/models/NAME:explain   the same, and "label"
//	GET  /v1/models, /healthz, /readyz, /openapi.json, /metrics
//	taxon.v1.Models                the same calls over gRPC, on an address of its own
//
// Models are stored by column (model.PredictOptions.RowByRow), so that the cost of a row is that of
// its own features and of one pass over the tree. If the manifest in a model's folder changes, the
// new model is opened beside the current one and replaces it atomically. Running requests finish
// with the model that they started with. A model that cannot be opened changes nothing and is
// logged.
//
// Requests beyond the limits are refused at once: too large bodies with 413 (RESOURCE_EXHAUSTED),
// and requests beyond the queue or the rate with 429 and Retry-After (RetryInfo). An invalid
// instance gets an error in its place; the other instances of the request are answered.
package serve
