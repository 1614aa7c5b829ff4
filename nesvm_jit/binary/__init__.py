"""One binary problem, from checked input to a certified `Solution`."""
