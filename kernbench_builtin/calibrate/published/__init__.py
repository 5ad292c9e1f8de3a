"""Published measurements, as `kernbench calibrate` reads them: facts, each file with its source above them."""
