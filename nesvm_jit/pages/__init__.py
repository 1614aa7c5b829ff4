"""Pictures of runs: what is drawn (documents of plain numbers), and how (matplotlib, HTML)."""
