"""Plain linear algebra: it knows nothing of machines."""
