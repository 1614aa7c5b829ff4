"""The paper's experiments with its settings, and a ledger of its claims."""
