"""Plain linear algebra, which depends on no machine."""
