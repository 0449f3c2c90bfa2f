package jobs

import _ "taxon/internal/methods/all" // whose options the tests show
