"""Where a program runs: one seam, two backends, one shared guest."""
