package sim

import _ "taxon/internal/methods/all" // what the simulated cluster trains by
