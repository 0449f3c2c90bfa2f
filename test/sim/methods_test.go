package sim

import _ "taxon/internal/methods/all" // the methods by which the simulated cluster trains
