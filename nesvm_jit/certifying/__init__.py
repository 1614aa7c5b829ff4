"""How far any model is from the optimum, proven: models of others and our own, without a solver."""
